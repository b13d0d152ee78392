"""What a bisect asks and what it may answer, with nothing measured yet."""
