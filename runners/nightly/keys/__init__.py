"""Parts of a plan that are models of their own."""
