"""Which issues there should be, and what they say: one for each cause, with all that it explains."""
