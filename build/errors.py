"""The base class of errors about problems outside the program, which every room raises.

    TidemarkError              exit 2: what was wrong, where, and what to do
    ├── build.*Error           sources, recipes, compiles
    ├── suites.*Error          suites, servers, load generators
    └── history.*Error         the store

A bug in Tidemark itself stays an ordinary Python exception with its traceback.
"""

from build.addresses import redacted


class TidemarkError(Exception):
    """A problem that the user has to solve, or that lies with the machine.

    `what` says what was wrong; `where` names the file, key, process or log it was seen in; `hint` says
    what to do. Passwords and tokens of addresses are hidden in all three, whoever shows or stores them.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(redacted(what))
        self.what = redacted(what)
        self.where = redacted(where)
        self.hint = redacted(hint)

    def __str__(self) -> str:
        """Return one line each for `what`, `where` and `hint`; empty ones are omitted."""
        parts = [self.what]
        if self.where:
            parts.append(f"  where: {self.where}")
        if self.hint:
            parts.append(f"  to do: {self.hint}")
        return "\n".join(parts)
