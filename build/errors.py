"""The base class of errors about problems outside the program, which every room raises.

    TidemarkError              exit 2: what was wrong, where, and what to do
    ├── build.*Error           sources, recipes, compiles
    ├── suites.*Error          suites, servers, load generators
    └── history.*Error         the store

A bug in Tidemark itself stays an ordinary Python exception with its traceback.
"""

import errno
import os
import re
import resource
import shlex
from collections.abc import Iterable

from build.addresses import redacted

_OF_THE_MACHINE = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or raise the quota",
    errno.EROFS: "choose a folder that may be written",
    errno.EACCES: "check its owner and rights",
    errno.EPERM: "check its owner and rights",
    errno.ENOTDIR: "name a folder where a folder is expected",
    errno.EISDIR: "name a file where a file is expected",
    errno.EEXIST: "move what is there out of the way, or name another",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "its symbolic links lead in a circle",
    errno.EIO: "look at the kernel's log: the disk may be failing",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine",
    errno.EAGAIN: "raise the limit of processes and threads (ulimit -u)",
}
"""What to do about what the kernel refuses; other numbers are more likely to be bugs."""


_FURTHER_LINE = re.compile(r"\r?\n(?!    )")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `did you mean X?` for the known word that is most like a mistyped one; empty if none is."""
    from difflib import get_close_matches  # loaded only when something was mistyped

    close = get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]}?" if close else ""


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
        """Return a line each for `what`, `where` and `hint`, without empty ones.

        Further lines of theirs are set off, so that nothing in a name or a log passes for one of ours.
        """
        parts = [self.what]
        if self.where:
            parts.append(f"  where: {self.where}")
        if self.hint:
            parts.append(f"  to do: {self.hint}")
        return "\n".join(_FURTHER_LINE.sub("\n    ", part) for part in parts)


def machine_refusal(error: Exception) -> TidemarkError | None:
    """Return the error for what the machine refused: a file, a disk, memory; None for anything else."""
    if _is_out_of_memory(error):
        return TidemarkError("there is not enough memory", hint=_memory_hint())
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        # Most likely the name of a file, as Python reads it from the kernel (PEP 383).
        return TidemarkError(
            "a name or a text holds bytes that are no UTF-8",
            where=readable(str(error.object)[:200]),
            hint="rename the file, or replace the text",
        )
    if not isinstance(error, OSError):
        return None
    if isinstance(error, FileNotFoundError) and error.filename is None:
        # What os.getcwd() raises: no path was named.
        return TidemarkError("the current folder is not there any more", hint="change to another one")
    hint = _OF_THE_MACHINE.get(error.errno or 0)
    if hint is None:
        return None
    where = "" if error.filename is None else str(error.filename)[:200]
    return TidemarkError(error.strerror or str(error), where=where, hint=hint)


def readable(name: str) -> str:
    """Return a name in which bytes that are no UTF-8 are written as `\\xff`."""
    try:
        return os.fsencode(name).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return ascii(name)


_WITHOUT_MEMORY = ("can't start new thread", "failed to map segment", "cannot allocate memory")
"""How Python and its loader of libraries say so."""


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    told = isinstance(error, RuntimeError | ImportError) and str(error).lower()
    return isinstance(error, MemoryError) or bool(told and any(text in told for text in _WITHOUT_MEMORY))


def _memory_hint() -> str:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return "free some memory, or see the limits of this process (ulimit -a)"
    return f"raise the limit of address space, which is {soft // 1024**2} MiB here (ulimit -v)"


def shell_line(*words: object) -> str:
    """Return the words of a command as one line for a POSIX shell, each quoted if it needs that."""
    return shlex.join(map(str, words))
