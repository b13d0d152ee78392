"""Carrying out a bisect: candidates, builds, sessions, and the log."""
