"""Suites and what they run on: workloads, servers, load generators, resets and metrics."""
