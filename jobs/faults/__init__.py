"""Fault injection for runs and readers: killed processes, damaged files, hostile input."""
