"""The Gaussian support vector machine on Nyström features: for very many rows."""
