"""Damaged inputs for every parser and importer, and killed sessions; for tests and for `bench robustness`."""
