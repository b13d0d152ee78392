"""The store: sessions, runs, samples and metrics, and statistics over them."""
