"""Jobs that people run around a backfill, and the definitions that a code location adds to have them."""
