"""The outputs of a step of a job, read as GitHub reads them."""

from pathlib import Path


def read_outputs(path: Path) -> dict[str, str]:
    """The outputs of the step of a job, as GitHub reads them."""
    found, lines = {}, iter(path.read_text().splitlines() if path.exists() else ())
    for line in lines:
        name, several, end = line.partition("<<")
        if several:
            found[name] = "\n".join(iter(lambda end=end: next(lines), end))  # type: ignore[misc]
        else:
            name, _, found_value = line.partition("=")
            found[name] = found_value
    return found
