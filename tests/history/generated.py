"""Small histories that Hypothesis makes up, and everything that a history holds in one value."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import itemgetter
from pathlib import Path

from hypothesis import strategies as st

from history.open import open_store
from history.store.records import DroppedRound, SessionStatus, StepNoise
from history.store.schema import change_series, changes, series, sessions
from history.store.writer import Store
from history.timestamps import to_text
from history.transfer.database_source import opened
from history.transfer.portable_schema import Row
from suites.measurement import Measurement
from tests.history.handmade import MACHINE, NIGHT, run_record, session_start
from tests.history.profiled import profile

VERSIONS = ("postgres@17.11", "postgres@18.6", "mysql@9.7.2", "postgres@18.6#mine")
STEPS = ("insert", "delete")
KINDS = ("payment", "look-up")

finite = st.floats(min_value=1e-3, max_value=1e9)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@dataclass(frozen=True)
class Made:
    """What one session holds; equal sessions are recorded alike everywhere."""

    number: int
    status: SessionStatus
    rates: tuple[tuple[str, str, tuple[float, ...]], ...]
    """Step, version, QPS by round."""

    dropped: tuple[tuple[str, str], ...] = ()
    noise: float | None = None
    box: str = "f00d"
    profiled: bool = False
    kinds: tuple[tuple[str, float], ...] = ()
    """Kinds of transactions, with the queries per second of each."""
    note: str = ""

    @property
    def uid(self) -> str:
        """The session's name."""
        return f"night-{self.number}"


def _rates() -> st.SearchStrategy[tuple[tuple[str, str, tuple[float, ...]], ...]]:
    some = st.lists(finite, min_size=1, max_size=2).map(tuple)
    rate = st.tuples(st.sampled_from(STEPS), st.sampled_from(VERSIONS), some)
    return st.lists(rate, max_size=3, unique_by=lambda rate: rate[:2]).map(tuple)


def made(number: int) -> st.SearchStrategy[Made]:
    """A session that ended."""
    ended = [sessionstatu for sessionstatu in SessionStatus if sessionstatu is not SessionStatus.RUNNING]
    return st.builds(
        Made,
        number=st.just(number),
        status=st.sampled_from(ended),
        rates=_rates(),
        dropped=st.lists(st.tuples(st.sampled_from(STEPS), texts), max_size=3).map(tuple),
        noise=st.none() | finite,
        box=st.sampled_from(["f00d", "beef"]),
        profiled=st.booleans(),
        kinds=st.lists(st.tuples(st.sampled_from(KINDS), finite), max_size=2, unique_by=itemgetter(0)).map(
            tuple
        ),
        note=texts,
    )


@st.composite
def two_boxes(draw: st.DrawFn) -> tuple[list[Made], list[Made]]:
    """The sessions of two histories, which may share some."""
    pool = [draw(made(number)) for number in range(draw(st.integers(1, 4)))]
    chosen = [draw(st.sets(st.sampled_from(pool))) for _ in range(2)]
    first, second = (sorted(numbers, key=lambda made_session: made_session.number) for numbers in chosen)
    return first, second


def record(path: Path, all_made: Sequence[Made], *, change: bool = False) -> None:
    """Write a history."""
    moment = [NIGHT]
    with open_store(path, clock=lambda: moment[0]) as store:
        for made_session in all_made:
            moment[0] = NIGHT + timedelta(days=made_session.number)
            _record_session(store, made_session)
        if change:
            add_change(store)


def _record_session(store: Store, made_session: Made) -> None:
    machine = replace(MACHINE, fingerprint=made_session.box, hostname=f"box-{made_session.box}")
    start = replace(
        session_start(made_session.uid),
        machine=machine,
        options={"note": made_session.note},
        command=made_session.note,
    )
    session = store.start_session(start)
    position = 0
    for step, version, rates in made_session.rates:
        for repetition, qps in enumerate(rates, start=1):
            position += 1
            run = run_record(
                version=version,
                step=step,
                step_position=STEPS.index(step),
                repetition=repetition,
                position=position,
            )
            taken = profile({"client backend;main": position}) if made_session.profiled else None
            values = {"qps": qps, "reset_seconds": 0.1}
            kinds = {kind: {"qps": rate} for kind, rate in made_session.kinds}
            measured = Measurement(values, rates, (made_session.note,), taken, kinds)
            store.record_run(session, replace(run, measurement=measured))
    for step, reason in made_session.dropped:
        store.record_dropped(session, DroppedRound(step, 1, reason, {VERSIONS[0]: 1.5}))
    store.finish_session(session, made_session.status)
    if made_session.noise is not None:
        store.record_noise(session, [StepNoise("insert", "qps", made_session.noise, 9.0, 10)])


def add_change(store: Store, status: str = "open") -> None:
    """A change in the first series, between the first and the last session; nothing where there is none."""
    with store.database.writing() as connection:
        its_series = connection.execute(series.select().order_by(series.c.id)).first()
        nights = connection.execute(sessions.select().order_by(sessions.c.id)).all()
        if its_series is None or len(nights) < 2:
            return
        row = {
            "fingerprint": "c0ffee",
            "branch": its_series.branch,
            "suite": its_series.suite,
            "direction": "regression",
            "status": status,
            "reason": None,
            "found_at": to_text(NIGHT),
            "updated_at": to_text(NIGHT),
        }
        statement = changes.insert().values(row).returning(changes.c.id)
        change_id = connection.execute(statement).scalar_one()
        ends = {"last_before_id": nights[0].id, "first_after_id": nights[-1].id, "raised_id": nights[-1].id}
        levels = {"level_before": 1.0, "level_after": 0.9, "ratio_low": 0.88, "ratio_high": 0.92}
        connection.execute(
            change_series.insert().values(
                change_id=change_id, series_id=its_series.id, gone_id=None, confidence=0.98, **ends, **levels
            )
        )


Contents = dict[tuple[str, tuple[object, ...]], Row]
"""Table and key -> row."""


def contents(target: Path | str) -> Contents:
    """All that a history holds of sessions that ended."""
    with opened(target) as source:
        items = list(source.items())
    found = {(item.table.name, item.table.key_of(item.row)): item.row for item in items}
    assert len(found) == len(items), "a key is not unique"
    return found
