"""The nightly service: what is new, what it takes to measure it, and what a person finds in the morning."""
