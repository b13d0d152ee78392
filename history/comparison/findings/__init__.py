"""What a comparison found beside its verdicts: differences that are certain, each in one line."""
