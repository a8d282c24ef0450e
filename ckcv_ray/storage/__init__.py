"""The run folder: files written atomically, read within limits."""
