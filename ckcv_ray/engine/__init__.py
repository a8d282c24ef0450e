"""The computation: evaluations, what to compute next, and the backends that do it."""
