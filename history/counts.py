"""Numbers with their nouns."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 night`, `2 nights`, `2 passes`."""
    return f"{number} {noun if number == 1 else plural or plural_of(noun)}"


def plural_of(noun: str) -> str:
    """Return the plural of a regular noun that does not end in y."""
    return f"{noun}{'es' if noun.endswith(('s', 'x', 'ch')) else 's'}"
