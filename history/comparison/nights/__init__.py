"""Comparisons over nights, and the trend of the last nights."""
