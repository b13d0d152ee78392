"""What a step cost and who disturbed it: CPU time, counters, processes, throttling."""
