"""Worked examples: procedures of cross validation on real and on simulated data, each a study of its own."""
