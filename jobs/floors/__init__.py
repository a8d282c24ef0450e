"""The bounds of the dependencies, installed and used: ``python jobs/floors``."""
