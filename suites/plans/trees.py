"""Plans as trees: what of two plans is the same, and which step of them differs first.

The texts are those of EXPLAIN of Postgres, of MySQL's FORMAT=TREE, and of the tables that MariaDB lists. A
step of a plan is a line that begins with an arrow or at the left margin; other lines are conditions of the
step above.
"""

import contextlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

# Costs follow from rows and settings, and say nothing more.
_COST = re.compile(r"\s+\((?=cost=|rows=)(?:cost=[^)]*?)?\s*(?:rows=(?P<rows>[\d.e+]+))?(?:\s+width=\d+)?\)")
_ROWS = re.compile(r" \(rows=(?P<rows>[\d.e+]{1,30})\)$")
_IDS = re.compile(r"\d+(?:, ?\d+){3,}")
_MORE_KEYS = re.compile(r"over \(.*\)")

_OF_TABLE = re.compile(r"(?<!Bitmap Index Scan) on (?P<table>[^\s(;<]+)")
_LISTED = re.compile(r"(?P<table>[^\s:]+): (?P<how>\S+ by [^;]*)")
_OTHER_PART = re.compile(r"SubPlan|InitPlan|\$\d")
_CONDITION = re.compile(r":? \(.*|: .*")

MAX_CHARACTERS = 60
"""The longest name of a step of a plan that a sentence quotes."""


@dataclass(frozen=True)
class PlanStep:
    """One step of a plan, such as a join or a scan."""

    depth: int
    """The column of its arrow; -1 without one."""

    text: str
    """What it does, with the table and the index: `Index Scan using orders_pkey on orders`."""

    rows: float | None = None
    """The rows that the server expects of one execution of it; None where it does not say."""

    conditions: tuple[str, ...] = ()
    """Filters, keys of sorts and conditions of joins."""

    @property
    def name(self) -> str:
        """What it does, without conditions, for a sentence; without the table where the plan lists tables."""
        listed = _LISTED.match(self.text)
        return _shortened(listed["how"] if listed else _CONDITION.sub("", self.text))

    @property
    def listed(self) -> str:
        """The table, where the plan is a list of tables; else empty."""
        found = _LISTED.match(self.text)
        return found["table"] if found else ""

    @property
    def table(self) -> str:
        """The table that it reads; empty for one that reads other steps."""
        found = _OF_TABLE.search(self.text)
        return self.listed or (found["table"] if found else "")


@dataclass(frozen=True)
class PlanDifference:
    """The first step in which two plans differ. One side is None where a step is only in the other plan."""

    base: PlanStep | None
    contender: PlanStep | None
    table: str
    """The table at which they differ; empty if the name of the step has it, or none is read below."""

    @property
    def text(self) -> str:
        """The difference in a few words, with the rows that both servers expect."""
        if self.base is None or self.contender is None:
            step, word = (self.contender, "with") if self.contender else (self.base, "without")
            return f"{word} {step.name if step else ''}{self._place}"
        if self.base.name == self.contender.name:
            return f"another condition of {self.contender.name}{self._place}{self._expected}"
        return f"{self.contender.name} instead of {self.base.name}{self._place}{self._expected}"

    @property
    def _place(self) -> str:
        return f" at {self.table}" if self.table else ""

    @property
    def _expected(self) -> str:
        assert self.base is not None
        assert self.contender is not None
        if self.contender.rows is None:
            return ""
        expected = f"{self.contender.rows:,.0f}"
        text = f", {expected} row{'' if expected == '1' else 's'} estimated"
        if self.base.rows is None or round(self.base.rows) == round(self.contender.rows):
            return text
        return f"{text}, base {self.base.rows:,.0f}"


def normalized(plan: str) -> str:
    """Return a plan without costs and lists of ids; the rows that a step expects follow it as ` (rows=9)`."""
    without = _COST.sub(lambda cost: f" (rows={cost['rows']})" if cost["rows"] else "", plan)
    return _MORE_KEYS.sub("over (…)", _IDS.sub("…", without)).strip()


def difference(base: str, contender: str) -> PlanDifference | None:
    """Return the first step in which two normalized plans differ; None if only estimates do.

    Steps that do something else come before steps with other conditions. Estimates differ from load to load,
    as servers sample their tables.
    """
    statements = list(zip_longest(_statements(base), _statements(contender), fillvalue=()))
    for says in (_does, _does_under_conditions):
        for old, new in statements:
            found = _first([*map(says, old)], [*map(says, new)])
            if found is None:
                continue
            place, is_in_base, is_in_contender = found
            before = old[place] if is_in_base else None
            after = new[place] if is_in_contender else None
            step, steps = (after, new) if after is not None else (before, old)
            return PlanDifference(before, after, _place_of(steps, place) if step is not None else "")
    return None


def _first(old: Sequence[str], new: Sequence[str]) -> tuple[int, bool, bool] | None:
    """Return where two lists differ first, and whether the entry there belongs to each; None if they do not.

    An entry belongs to one list alone if without it the rest is equal.
    """
    for place, (before, after) in enumerate(zip_longest(old, new)):
        if before != after:
            is_added = new[place + 1 :] == old[place:]
            is_dropped = old[place + 1 :] == new[place:]
            return place, before is not None and not is_added, after is not None and not is_dropped
    return None


def _does(step: PlanStep) -> str:
    return f"{step.listed} {step.name}"


def _does_under_conditions(step: PlanStep) -> str:
    # How a condition names another part of the plan differs between versions of Postgres.
    conditions = (text.partition(":")[0] if _OTHER_PART.search(text) else text for text in step.conditions)
    return "\n".join((step.text, *conditions))


def _place_of(steps: Sequence[PlanStep], position: int) -> str:
    """Return the table at which a step stands, unless its name has it.

    It is the one that the last of the steps directly below reads first: the inner one of a join.
    """
    if steps[position].table:
        return steps[position].listed
    depth = steps[position].depth
    below: list[PlanStep] = []
    for step in steps[position + 1 :]:
        if step.depth <= depth:
            break
        below.append(step)
    if not below:
        return ""
    nearest = min(step.depth for step in below)
    last = max(place for place, step in enumerate(below) if step.depth == nearest)
    return next((step.table for step in (*below[last:], *below) if step.table), "")


def _statements(plan: str) -> Iterator[tuple[PlanStep, ...]]:
    """Yield the steps of each statement's plan, in the order of the lines."""
    for paragraph in plan.split("\n\n"):
        yield tuple(_steps(paragraph.splitlines()))


def _steps(lines: Sequence[str]) -> Iterator[PlanStep]:
    step: PlanStep | None = None
    for line in filter(str.strip, lines):
        text = line.strip()
        has_arrow, depth = text.startswith("->"), len(line) - len(line.lstrip())
        if not has_arrow and depth and step is not None:
            step = replace(step, conditions=(*step.conditions, text))
            continue
        if step is not None:
            yield step
        step = _step(text.removeprefix("->").strip(), depth if has_arrow else -1)
    if step is not None:
        yield step


def _step(text: str, depth: int) -> PlanStep:
    found = _ROWS.search(text)
    return PlanStep(
        depth, text[: found.start()] if found else text, _number(found["rows"]) if found else None
    )


def _number(text: str) -> float | None:
    with contextlib.suppress(ValueError):
        number = float(text)
        return number if math.isfinite(number) else None
    return None


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"
