"""The counted passes of a session, and whether versions did the same work in them."""
