"""The page of a change."""
