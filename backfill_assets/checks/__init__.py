"""What is in a table, measured slice by slice in few statements, years at a time."""
