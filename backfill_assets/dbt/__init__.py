"""dbt models with the same slices: what its macros are spelled from, its turn at a DuckDB file, and its Dagster side."""
