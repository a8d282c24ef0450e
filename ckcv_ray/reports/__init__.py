"""Finished studies for people: their values, a summary in text, and an HTML page with figures."""
