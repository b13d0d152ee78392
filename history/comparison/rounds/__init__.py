"""What happens within the rounds of a comparison."""
