"""The domain of a comparison: on what data, how long and with how many clients, and what cannot be seen
there."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from history.comparison.beside.clients import clients_of
from history.comparison.intervals import looks_of
from history.comparison.result import ContenderComparison
from history.counts import counted
from history.store.records import DATA, Session
from suites.control_groups.declared import LimitError, parse_memory
from suites.keys.durability import Durability

LATE_SECONDS = 30.0
"""The seconds of work of a version in a round below which what begins later in its life is not seen."""

STALL_SECONDS = 30.0
"""The seconds of work of a version in all rounds below which a stall every few seconds is not decided."""

RECLAIM = "reclaim"
"""The option of a session with what took memory back that had not been used for a while."""

DEEP_LEVELS = 4
"""The levels of indexes on a hundred million rows; with fewer, code of deeper trees does not run."""


@dataclass(frozen=True)
class Domain:
    """What a comparison was measured on. None is what the session does not say."""

    rows: int | None
    bytes: int | None
    index_levels: int | None
    """The levels of the deepest index."""

    cache_bytes: int | None
    """The bytes of the server's buffer cache."""

    memory_bytes: int
    """The memory of the machine, or of each server if that was declared; 0 if it is not known."""

    clients: tuple[int, ...]
    """The numbers of clients of its steps, ascending."""

    is_counted: bool
    """Whether instructions of fixed work were counted, and no time was measured."""

    seconds: float | None
    """How long each version works in a round."""

    work_seconds: float
    """The same over all rounds."""

    is_durable: bool
    """Whether commits wait for their flush."""

    is_long: bool = False
    """Whether servers stay up, so that a round is a block of a longer life."""

    contender_cache_bytes: int | None = None
    """The bytes of the buffer cache of the contender's server."""

    reclaim: str = ""
    """What of the kernel took memory back early, of data that do not fit into buffers; empty for nothing."""

    @property
    def is_cached(self) -> bool:
        """Whether the data fit into the buffer cache of the server."""
        return self.bytes is not None and self.cache_bytes is not None and self.bytes <= self.cache_bytes

    @property
    def life_seconds(self) -> float:
        """How long each version works on the same data, as far as it is known; 0 otherwise."""
        return self.work_seconds if self.is_long else self.seconds or 0.0

    @property
    def is_in_memory(self) -> bool:
        """Whether they fit into the memory that is there for them."""
        return self.bytes is not None and (self.is_cached or self.bytes <= self.memory_bytes)

    @property
    def unseen(self) -> tuple[str, ...]:
        """What cannot be seen in it, in a few words each."""
        return tuple(limit.words for limit in UNSEEN if limit.applies(self))

    @property
    def text(self) -> str:
        """The domain and what cannot be seen in it, in one sentence."""
        unseen = f": not seen is {', '.join(self.unseen)}" if self.unseen else ""
        return f"On {', '.join(self._parts())}{unseen}."

    def _parts(self) -> Iterator[str]:
        sizes = [f"{_rounded(self.rows):,} rows"] if self.rows is not None else []
        if self.bytes is not None:
            sizes.append(_size(self.bytes) if sizes else f"{_size(self.bytes)} of data")
        first, *known = sizes or ["data of unknown size"]
        if self.index_levels:
            known.append(f"indexes {counted(self.index_levels, 'level')} deep")
        yield f"{first} ({', '.join(known)})" if known else first
        if self.bytes is not None:
            yield "cached" if self.is_cached else "in memory" if self.is_in_memory else "larger than memory"
        if self.reclaim:
            yield f"proactive reclaim ({self.reclaim})"
        if self.cache_bytes and self.contender_cache_bytes and self.cache_bytes != self.contender_cache_bytes:
            yield f"buffers of {_size(self.cache_bytes)} and {_size(self.contender_cache_bytes)}"
        if self.clients:
            least, most = self.clients[0], self.clients[-1]
            yield counted(most, "client") if least == most else f"{least} to {most} clients"
        if self.is_counted:
            yield "counted work"
        elif self.seconds is not None:
            yield f"{'blocks' if self.is_long else 'rounds'} of {self.seconds:g} s"


@dataclass(frozen=True)
class Unseen:
    """A kind of regression, and the domains in which it cannot be seen."""

    words: str
    applies: Callable[[Domain], bool]


UNSEEN: tuple[Unseen, ...] = (
    Unseen("time: waiting, locks, cache misses, I/O", lambda domain: domain.is_counted),
    Unseen("what begins later", lambda domain: 0 < domain.life_seconds < LATE_SECONDS),
    Unseen("rare stalls", lambda domain: 0 < domain.work_seconds < STALL_SECONDS),
    Unseen("larger trees", lambda domain: 0 < (domain.index_levels or 0) < DEEP_LEVELS),
    Unseen("reading from disk", lambda domain: not domain.is_counted and domain.is_in_memory),
    Unseen("waiting for other clients", lambda domain: not domain.is_counted and domain.clients[-1:] == (1,)),
    Unseen(
        "the time of flushes (relaxed durability)",
        lambda domain: not domain.is_counted and not domain.is_durable,
    ),
)
"""What is not seen, in the order in which it is told."""


def domain_of(contender: ContenderComparison) -> Domain | None:
    """Return the domain of a comparison; None for one of other people's tables, which do not say.

    The data are those of the base; those of the other versions were loaded alike.
    """
    session = contender.session
    if session.is_imported:
        return None
    options = session.options
    loaded = options.get(DATA)
    extent, other = (
        loaded.get(str(version), {}) if isinstance(loaded, Mapping) else {}
        for version in (contender.base, contender.contender)
    )
    sizes = {name: _count(extent.get(name)) for name in ("rows", "bytes", "index_levels", "cache_bytes")}
    if sizes["rows"] is None:
        tables, rows = _count(options.get("tables")), _count(options.get("rows_per_table"))
        sizes["rows"] = tables * rows if tables and rows else None
    clients = {clients_of(session, step.step) for step in contender.steps}
    length = options.get("seconds")
    seconds = float(length) if isinstance(length, int | float) and not session.only_counted else None
    rounds = max((step.judged.pairs for step in contender.steps), default=0)
    is_long = session.is_long
    if seconds is not None and is_long:
        # They are those of all blocks of a step, of which there may have been fewer.
        looks = looks_of(session)
        seconds /= max(1, rounds if looks is None else looks[1])
    return Domain(
        **sizes,
        memory_bytes=_memory_of(session),
        clients=tuple(sorted(count for count in clients if count is not None)),
        is_counted=session.only_counted,
        seconds=seconds,
        work_seconds=(seconds or 0.0) * rounds,
        is_durable=session.durability != Durability.RELAXED,
        is_long=is_long,
        contender_cache_bytes=_count(other.get("cache_bytes")),
        reclaim=str(options.get(RECLAIM) or ""),
    )


def _memory_of(session: Session) -> int:
    """Return the memory that a server had, which a history of others may say in words that are none."""
    with suppress(LimitError):
        memory = session.declared.memory
        return parse_memory(memory) if memory else session.machine.memory_bytes
    return 0


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _rounded(rows: int) -> int:
    """Return a number with three digits that are not zero: rows are estimates of the server."""
    return int(float(f"{rows:.3g}"))


def _size(size: int) -> str:
    if size < 10_000_000:
        return f"{size / 1e6:.1f} MB"
    return f"{size / 1e6:,.0f} MB" if size < 10_000_000_000 else f"{size / 1e9:,.0f} GB"
