"""A base against contenders: pairs, intervals, verdicts, and what explains them."""
