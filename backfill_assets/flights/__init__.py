"""Real input: every flight out of New York City in 2013, in days of America/New_York over UTC instants."""
