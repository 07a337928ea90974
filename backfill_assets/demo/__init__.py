"""The demos: real servers, a real backfill through the run queue, and a verdict on every day."""
