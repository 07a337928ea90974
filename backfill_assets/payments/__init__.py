"""The worked example of a replay: payments as events, in files, so that no broker is needed."""
