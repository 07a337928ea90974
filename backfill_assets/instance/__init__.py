"""What dagster.yaml names: classes that Dagster's own processes load. Nothing here knows an asset."""
