"""Charts as SVG: marks with links, and the same numbers as a table."""
