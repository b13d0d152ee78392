"""Damaged and invented inputs for every parser and importer; used by tests and by `bench robustness`."""
