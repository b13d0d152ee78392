"""Benchmarks of Tidemark itself, which compare figures with their targets: `./tidemark bench NAME`."""
