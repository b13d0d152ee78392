"""Programs that check our own figures against their targets; run by `./tidemark bench NAME`."""
