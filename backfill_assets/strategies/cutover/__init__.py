"""Flipping readers from the old table to the new one and back, and removing the old one, in steps that converge."""
