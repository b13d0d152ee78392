"""What a variant adds to its server: companion processes and indexes (docs/decisions/0044-companions.md)."""
