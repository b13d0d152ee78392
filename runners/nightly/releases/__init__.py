"""Releases that have been published and that a plan does not name."""
