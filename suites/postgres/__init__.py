"""The Postgres server: configuration, data directory, life cycle, counters and reset."""
