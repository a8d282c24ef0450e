"""Bounds on error rates and on mean losses, and the comparison of learners."""
