"""`./tidemark update`: another commit of Tidemark on this box, tried first, and left again if it fails."""
