"""Rows of the metric registry, by subject."""
