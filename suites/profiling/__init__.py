"""CPU profiles of servers under load: sampled by perf, folded by inferno, and stored by thread role."""
