"""Exact counts: instructions of a server under valgrind's callgrind, for a fixed number of transactions."""
