"""Checks whether this machine is fit for benchmarking, and changes of its settings that make it so."""
