"""Benchmarks of what is counted instead of timed, on real builds."""
