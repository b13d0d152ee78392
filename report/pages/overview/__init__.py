"""The first page: one sentence on the last night, a card for each change for the worse, then the tables."""
