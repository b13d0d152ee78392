"""Tries of pull requests on GitHub: whose word counts, for which commit, and how the answer is told."""
