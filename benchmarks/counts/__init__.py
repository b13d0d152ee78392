"""Exact counts: sessions of real builds, passes that were recorded, and simulated levels."""
