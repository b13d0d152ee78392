"""Simulated ranges of commits, and bisects of them by Tidemark and by plain bisection."""
