"""Alerts: from the history to the outbox, from there to the issue tracker, and people's answers back."""
