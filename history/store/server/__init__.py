"""What only a history on a server needs."""
