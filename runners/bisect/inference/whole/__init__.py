"""The search that goes on after its first answer, until steps make up the whole difference."""
