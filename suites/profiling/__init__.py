"""CPU profiles of servers under load: sampled by perf, folded, and stored by thread role."""
