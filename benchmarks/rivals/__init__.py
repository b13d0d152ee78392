"""Other tools for change points, in an environment of their own, and how they score."""
