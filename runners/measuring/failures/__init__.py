"""What is done about failures: whose fault they are, what is measured again, and what is left out."""
