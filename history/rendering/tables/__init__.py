"""Tables below that of verdicts."""
