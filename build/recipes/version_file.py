"""The file in which MySQL and MariaDB, being of one descent, name the release of a source tree alike."""

import re

from build.recipes.recipe import RecipeError


def release_in(text: str, title: str, file: str) -> str:
    """Return the release (`9.7.2`) that `text`, the contents of `file`, names.

    Raises RecipeError, with the `title` of the engine, if it names none.
    """
    numbers = []
    for part in ("MAJOR", "MINOR", "PATCH"):
        match = re.search(rf"^MYSQL_VERSION_{part}=(\d+)\s*$", text, re.MULTILINE)
        if match is None:
            raise RecipeError(f"the source names no {title} release: {part} is missing", where=file)
        numbers.append(match[1])
    return ".".join(numbers)
