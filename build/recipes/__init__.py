"""How each engine is configured and compiled, version by version."""
