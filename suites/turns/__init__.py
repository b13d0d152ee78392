"""Servers that take turns at one step: the load of each, its costs, its reset and its checks."""
