"""What a box did: notes on it, and steps that its series share."""
