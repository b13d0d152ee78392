"""Tries: a branch tip or a patch against what it is based on, before anybody merges it."""
