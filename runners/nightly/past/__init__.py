"""Past commits of branches: which are measured next, and measuring them."""
