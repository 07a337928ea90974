"""Strategies beside recomputing a slice, which is what an asset does by itself."""
