"""What a run has computed, as values: records, the ledger that holds them, and the table of candidates."""
