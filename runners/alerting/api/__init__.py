"""Requests to the REST APIs of trackers: one client, and for each tracker what differs in its answers."""
