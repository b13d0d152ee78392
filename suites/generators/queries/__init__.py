"""The load generator for long queries: Tidemark's own client, which runs and times one at a time."""
