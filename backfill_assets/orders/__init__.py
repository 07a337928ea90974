"""The worked example of a migration: orders by an old job and by its replacement, and a view that readers read."""
