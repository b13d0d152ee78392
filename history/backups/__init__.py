"""Copies of a whole history: how they are made, and which of them are kept."""
