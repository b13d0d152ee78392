"""What only a history in a SQLite file needs."""
