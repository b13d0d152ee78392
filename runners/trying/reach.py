"""Whether the steps of a try execute the functions that it changes, and which suites would."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from build.errors import TidemarkError
from build.home import Home
from build.version import Engine
from history.comparison.beside.domain import domain_of
from history.comparison.result import Comparison
from history.counts import counted as number_of
from history.open import open_reader
from history.store.profiles import steps_that_execute
from history.store.reader import Reader
from history.store.records import EXECUTED
from runners.trying.changed_code import HEADERS, ChangedCode

_MAX_NAMED = 3
"""The functions, files or steps that a sentence names."""


@dataclass(frozen=True)
class Reach:
    """How far the steps of a try get into what it changes."""

    functions: tuple[str, ...] = ()
    """The functions that are changed."""

    executed: frozenset[str] = frozenset()
    """Some of those that a step executed; all that are known to be."""

    beside: tuple[str, ...] = ()
    """What is changed besides, of which nobody can tell whether it is executed."""

    unknown: str = ""
    """Why it is not known what is executed; empty if it is."""

    suites: Mapping[str, Sequence[str]] | None = None
    """The steps, by suite, that executed a changed function when this machine counted them before."""

    @property
    def is_none(self) -> bool:
        """Whether functions are changed, and no step executes any of them."""
        return bool(self.functions) and not (self.unknown or self.executed)

    @property
    def text(self) -> str:
        """That no step executes what is changed, in a sentence; empty if one does, or if it is not known."""
        if not self.is_none:
            return ""
        several = len(self.functions) != 1
        what = f"None of the {len(self.functions)} functions that" if several else "The function that"
        was = "was executed" if several else "was not executed"
        said = f"{what} this patch changes {was} in these steps ({_named(self.functions)})"
        if self.beside:
            return f"{said}; of what else it changes that cannot be told: {_named(self.beside)}."
        known = "; ".join(f"{suite} ({_named(steps)})" for suite, steps in (self.suites or {}).items())
        return f"{said}; suites that execute {'them' if several else 'it'}: {known or 'none counted here'}."

    @property
    def note(self) -> str:
        """That it is not known whether a step executes what is changed, and why; empty if it is."""
        return f"whether these steps execute what is changed is not known: {self.unknown}" * bool(
            self.unknown
        )


def reach_of(
    store: Reader,
    home: Home,
    engine: Engine,
    changed: ChangedCode,
    counted: Comparison | None,
    timed: Comparison | None,
) -> Reach:
    """Return what the counted session of a try shows of the functions that are changed."""
    names = tuple(dict.fromkeys(function.name for function in changed.functions))
    unknown = changed.unknown or _nothing_known(changed, counted)
    if unknown:
        return Reach(names, unknown=unknown)
    executed = frozenset(name for found in _executed(counted).values() for name in found)
    if executed:
        return Reach(names, executed)
    suites = _suites(store, home, engine, names)
    return Reach(names, beside=tuple(_beside(changed, timed)), suites=suites)


def _nothing_known(changed: ChangedCode, counted: Comparison | None) -> str:
    """Return why nothing is known of the functions of a try; empty if it is known of each step."""
    if not changed.functions:
        files = _named(changed.outside)
        return f"changed outside of functions: {files}" if files else "no code of the server is changed"
    if counted is None:
        return "nothing was counted"
    known = _executed(counted)
    lacking = [step.step for step in counted.contenders[0].steps if step.step not in known]
    return f"no lines were counted in {_named(lacking)}" if lacking else ""


def _executed(counted: Comparison | None) -> Mapping[str, Sequence[str]]:
    """Return the changed functions that each step executed, of those of which it is known."""
    found = {} if counted is None else counted.contenders[0].session.options.get(EXECUTED)
    return found if isinstance(found, Mapping) else {}


def _beside(changed: ChangedCode, timed: Comparison | None) -> Iterator[str]:
    """Yield what a counted pass cannot show: macros, data, what is left of inline functions, several clients.

    A function of a header may be nothing but a constant where it is used, in any file.
    """
    headers = (function.file for function in changed.functions if function.file.endswith(HEADERS))
    yield from dict.fromkeys((*changed.outside, *headers))
    domain = None if timed is None else domain_of(timed.contenders[0])
    if domain is not None and domain.clients[-1:] > (1,):
        yield f"what only {number_of(domain.clients[-1], 'client')} execute"


def _suites(store: Reader, home: Home, engine: str, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the steps, by suite, that executed a function, in the history of tries and the machine's own."""
    found: dict[str, Sequence[str]] = {}
    with store.database.reading() as connection:
        found |= steps_that_execute(connection, engine, names)
    # A history that cannot be read is no reason to end.
    if home.history.is_file():
        with suppress(TidemarkError), open_reader(home.history) as own, own.database.reading() as connection:
            for suite, steps in steps_that_execute(connection, engine, names).items():
                found[suite] = sorted({*found.get(suite, ()), *steps})
    return found


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
