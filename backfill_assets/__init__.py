"""Safe data backfills for ELT warehouses, as a Dagster code location. Importing this loads nothing else."""
