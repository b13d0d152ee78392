"""What a plan says about changes: whose they are, and which of them are muted."""
