"""Studies (Study), studies applied to a task (Problem), and how to run them (Execution)."""
