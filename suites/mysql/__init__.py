"""The MySQL server: configuration, data directory, life cycle, counters and reset."""
