"""What comparisons show beside their verdicts."""
