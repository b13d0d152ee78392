"""The formats in which other tools write results: a reader of each."""
