"""Exit codes that several commands share. That of a comparison or a bisect is its verdict's."""

TROUBLE = 2
"""Something could not be done, or not wholly; its message says what."""

INTERRUPTED = 130
"""By Ctrl-C or a signal to stop, as a shell counts them."""
