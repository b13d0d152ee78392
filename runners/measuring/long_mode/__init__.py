"""Sessions in which servers stay up, and each step starts from the data that the previous one left."""
