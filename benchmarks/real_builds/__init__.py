"""Benchmarks on servers that are really compiled and started: verdicts on throughput."""
