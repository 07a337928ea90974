"""`doctor`: whether the warehouse lets both lanes do what a rewrite does, found out without changing a row."""
