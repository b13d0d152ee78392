"""`python -m runners.parsing WORDS...`: parse a command line, and do nothing else.

The launcher calls it where it would have to install something first, with the Python of the system. So
neither this module nor one that it imports may need a package.
"""

import sys
from collections.abc import Sequence

import compare
from build.errors import TidemarkError
from runners import cli
from runners.exit_codes import TROUBLE
from runners.standard_streams import OutputError, prepare

ACCEPTED = 100
"""The exit code for arguments that can be carried out; help ends with 0, and what is refused with 2."""


def main(words: Sequence[str]) -> int:
    """Return ACCEPTED, or print help or what is wrong and end."""
    if words[:1] == ["compare"]:
        compare.parse(words[1:])
    elif words[:1] == ["test"]:
        cli.parser().parse_known_args(words)  # the others are for pytest
    else:
        try:
            cli.require_there(words)
        except TidemarkError as error:
            print(f"tidemark: {error}", file=sys.stderr)
            return TROUBLE
        cli.parser().parse_args(words)
    return ACCEPTED


if __name__ == "__main__":
    try:
        prepare()
    except OutputError as error:
        print(f"tidemark: {error}", file=sys.stderr)
        sys.exit(TROUBLE)
    sys.exit(cli.guarded(main, sys.argv[1:]))
