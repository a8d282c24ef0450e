"""Whole runs: made, loaded and verified."""
