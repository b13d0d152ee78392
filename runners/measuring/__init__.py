"""A session on one machine: versions served, measured round by round, stored, and cleaned up after."""
