"""Runs from start to end: execute, load and verify them."""
