"""Estimators of scikit-learn, and others with its interface, as learners.

Importing scikit-learn and skops takes a second, for which every worker, and commands that do not need them,
would wait: so the modules here import them in the functions that use them.
"""
