"""Computation: evaluations, scheduling of the next ones, and the backends that run them."""
