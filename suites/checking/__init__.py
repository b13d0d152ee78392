"""What must be true of the data of a suite: checks in SQL, and how they are asked of a server."""
