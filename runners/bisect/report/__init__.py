"""What is known of a bisect, for people: its state, text, Markdown, and replay."""
