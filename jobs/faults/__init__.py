"""Runs and readers under faults: processes killed, files damaged, hostile input."""
