"""A new box: its plan is made of answers, and what its nights need is checked."""
