"""Resamplings: how rows are divided into numbered splits."""
