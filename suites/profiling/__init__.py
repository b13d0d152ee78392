"""CPU profiles of servers under load: sampled by perf, folded by inferno, kept by role."""
