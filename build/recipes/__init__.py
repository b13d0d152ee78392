"""Recipes: how each version of each engine is configured and compiled."""
