"""Predictions over HTTP: what a request is answered with, and the server that Ray Serve runs."""
