"""Commands that a person copies into a shell, as messages, pages and mails print them."""

import shlex


def shell_line(*words: object) -> str:
    """Return the words of a command as one line for a POSIX shell, each quoted if it needs that."""
    return shlex.join(map(str, words))
