"""What the solver, Algorithm 1, whole runs and plans take, in time and memory."""
