"""The search among commits of merged branches: by ancestors in place of the order of a line."""
