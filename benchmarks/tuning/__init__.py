"""Choosing anew what was chosen by simulation."""
