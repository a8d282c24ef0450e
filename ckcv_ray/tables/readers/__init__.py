"""Readers of files, and of what is given in Python, as Arrow columns."""
