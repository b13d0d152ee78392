"""The history as it travels: exports, imports, merges, and making room."""
