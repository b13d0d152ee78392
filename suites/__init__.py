"""What is run: workloads, servers, load generators, the reset after a step, metrics."""
