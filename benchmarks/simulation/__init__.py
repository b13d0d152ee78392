"""Simulated rounds, suites, series and histories that benchmarks run our own methods on."""
