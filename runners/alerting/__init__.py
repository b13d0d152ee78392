"""Telling people: issues from the outbox to the tracker, and what people decided back."""
