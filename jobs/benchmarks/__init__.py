"""Time of the solver, Algorithm 1, complete runs and plans."""
