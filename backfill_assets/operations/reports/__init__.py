"""A report of each backfill: what it found, what it left, what it did not do, and how to go on."""
