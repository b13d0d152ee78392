"""How long things take: what of a budget is left, and what the record says of this machine."""
