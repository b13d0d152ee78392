"""What a series does that is no single step: it drifts, or alternates between two levels."""
