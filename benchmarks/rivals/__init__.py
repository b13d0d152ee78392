"""Other tools for change point detection, in a Python environment of their own, and their scores."""
