"""A workload in a user's own files: the options of a command line that make a suite, and keeping it."""
