"""Tests of the paper's results and of the claims: Table 1, losses of the margin, coverage of the bounds."""
