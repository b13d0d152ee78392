"""How the issues of boxes are told from each other: by the beginning of their fingerprints."""

import hashlib

ANY_BOX = "box-"
"""How the fingerprints of all alerts about boxes begin."""


def box_prefix(box: str) -> str:
    """Return how the fingerprints of all alerts about a box begin."""
    return f"{ANY_BOX}{digest(box)}-"


def digest(text: str) -> str:
    """Return eight hexadecimal digits for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]
