"""Whether this machine is fit to measure on: what is looked at, what is said, and what can be mended."""
