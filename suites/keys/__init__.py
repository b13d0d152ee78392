"""Parts of a suite.toml that are models of their own."""
