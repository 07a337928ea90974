"""What holds or refuses a backfill: lanes, kill switch, circuit breaker, budget, reason, retention, and the gate."""
