"""Both sides of a migration compared day by day and key by key, and what still stands in the way of a cutover."""
