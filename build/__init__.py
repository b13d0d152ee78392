"""Which versions exist, where their source comes from, how each is compiled, and the cache of builds."""
