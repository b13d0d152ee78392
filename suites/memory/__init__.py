"""The memory of a server's processes, and what each open connection adds to it."""
