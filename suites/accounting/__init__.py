"""Costs and disturbances of a step: CPU time, hardware counters, foreign processes, throttling."""
