"""Rounds that are kept on the box until the server of the history has them."""
