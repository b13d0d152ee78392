"""The history as it travels: exports, imports, merges, backups, and making room."""
