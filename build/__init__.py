"""Versions and engines, sources, recipes for compiling them, and the cache of builds."""
