"""The words of `./tidemark history`, and what carries them out."""
