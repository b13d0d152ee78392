"""Load generators that cannot pause, so that each slice is a run of its own."""
