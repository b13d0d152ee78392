"""Simulated rounds, suites, series and histories, to which the benchmarks apply our methods."""
