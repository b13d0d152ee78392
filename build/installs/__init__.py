"""Servers that the user has installed: an install prefix as a version, identified by its content."""
