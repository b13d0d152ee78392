"""Where the series of a pool are measured: on which of its boxes, and since when."""
