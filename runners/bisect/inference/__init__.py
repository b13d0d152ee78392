"""From rounds to probabilities: where the change is, what to measure next, and when to stop."""
