"""The HTML page of a run and its figures."""
