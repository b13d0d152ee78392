"""What a year of nights comes to: the geometric mean of each branch over the same steps, and its releases."""
