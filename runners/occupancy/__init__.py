"""Who has the machine: waiting until it is free, and a pause that keeps it free for a person."""
