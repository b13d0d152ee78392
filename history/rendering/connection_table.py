"""What an open connection costs each side of a comparison, as a table beside that of verdicts."""

from collections.abc import Iterator, Sequence

from history.comparison.result import ContenderComparison, StepComparison
from history.rendering.numbers import DASH
from history.rendering.table import Cell, Row
from history.store.records import HELD
from suites.metrics import (
    CONNECTION_HIGH,
    CONNECTION_KIB,
    CONNECTION_LOW,
    CONNECTION_RSS,
    CONNECTION_STATEMENTS,
    CONNECTION_TABLES,
    CONNECTS,
)

CONNECTION_TITLE = "KiB per open connection"
CONNECTION_HEADS = (
    *("step", "version", "KiB", "its interval", "page tables", "RSS as top", "connects/s", "statements"),
)
"""The columns of the table."""


def connection_rows(contender: ContenderComparison) -> list[Row]:
    """Return two rows per step, of base and contender; none of a session that held no connections."""
    if contender.session.primary != CONNECTION_KIB:
        return []
    return [row for step in contender.steps for row in _rows(contender, step)]


def connection_note(contender: ContenderComparison) -> Iterator[str]:
    """Yield how the table came about; nothing of a session that held no connections."""
    if contender.session.primary == CONNECTION_KIB:
        held = contender.session.options.get(HELD)
        levels = {tuple(its) for its in held.values()} if isinstance(held, dict) else set()
        texts = (", ".join(map(str, (0, *its))) for its in sorted(levels))
        yield (
            "KiB per open connection: slope of PSS without shared memory, with page tables, over "
            f"{'; '.join(texts)} connections, and its interval within a round; means of the paired rounds. "
            "RSS counts shared pages once per process."
        )


def _rows(contender: ContenderComparison, step: StepComparison) -> Iterator[Row]:
    ratios = {ratio.metric: ratio for ratio in step.metrics}
    for side, version in (("base", contender.base), ("contender", contender.contender)):
        values = {name: getattr(ratio, side) for name, ratio in ratios.items()}
        yield [
            Cell(step.step),
            Cell(str(version)),
            Cell(_whole(values[CONNECTION_KIB])),
            Cell(_interval([values[CONNECTION_LOW], values[CONNECTION_HIGH]])),
            *(
                Cell(_whole(values[name]))
                for name in (CONNECTION_TABLES, CONNECTION_RSS, CONNECTS, CONNECTION_STATEMENTS)
            ),
        ]


def _interval(ends: Sequence[float | None]) -> str:
    return DASH if None in ends else "–".join(map(_whole, ends))


def _whole(value: float | None) -> str:
    return DASH if value is None else f"{value:,.0f}"
