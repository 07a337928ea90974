"""Benchmarks: ours and a reference in turn, on one machine in one run; only the ratios mean anything."""
