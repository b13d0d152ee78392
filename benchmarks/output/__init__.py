"""How benchmarks report their figures."""
