"""Control groups, in which servers get less than the machine has."""
