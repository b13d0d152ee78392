"""Carrying out a bisect: its candidates, builds and sessions, and the log that they write."""
