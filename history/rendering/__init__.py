"""A comparison as a table on the terminal, Markdown, JSON or CSV."""
