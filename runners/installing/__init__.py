"""Installing a box: what `runner install` writes and does, and how it is removed."""
