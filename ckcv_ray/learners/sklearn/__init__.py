"""Estimators of scikit-learn, and others with its interface, as learners.

Importing scikit-learn and skops takes a second, which commands that do not need them and every worker would
wait for: so the modules here import them in the functions that use them.
"""
