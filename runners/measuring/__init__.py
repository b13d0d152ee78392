"""A session on one machine: its preparation, rounds, failure policy, recording and clean-up."""
