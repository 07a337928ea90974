"""Both sides of a migration compared: what is the same, and what is said of what is not."""
