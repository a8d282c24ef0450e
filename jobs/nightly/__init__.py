"""The nightly benchmark: ``python jobs/nightly``."""
