"""Finished builds: the cache, and archives that carry them between machines."""
