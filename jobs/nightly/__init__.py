"""The benchmark of every night: ``python jobs/nightly``."""
