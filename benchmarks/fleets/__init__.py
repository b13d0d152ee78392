"""Parts of `./tidemark bench fleet`, and the stands they need."""
