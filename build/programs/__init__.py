"""Programs that Tidemark starts: the variables that they get, the log of those that compile."""
