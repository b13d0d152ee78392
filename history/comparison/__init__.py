"""Comparison of a base with contenders: pairs, intervals, verdicts, and their explanation by costs."""
