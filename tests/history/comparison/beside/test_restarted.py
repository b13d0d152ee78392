"""The note on load generators that cannot pause, which is of rounds alone."""

from dataclasses import replace
from pathlib import Path

from history.comparison.compare import compare
from history.open import open_store
from history.rendering.notes import RESTARTED, notes
from history.store.records import EXACT, ONLY, RESTARTS, SessionStatus
from tests.history.handmade import NIGHT, run_record, session_start


def test_only_rounds_have_slices(tmp_path: Path) -> None:
    """Counted passes without rounds have no slices, whatever runs them."""
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(replace(session_start(), options={RESTARTS: True}))
        records = [run_record({"qps": 1000.0}, version=f"postgres@18.{n}", position=1) for n in (5, 6)]
        for record in records:
            store.record_run(session, record)
        store.finish_session(session, SessionStatus.FINISHED)
        base, new = (record.build.version for record in records)
        comparison = compare(store, base, [new])
    (contender,) = comparison.contenders
    assert RESTARTED in notes(comparison, contender)
    options = {RESTARTS: True, EXACT: {"when": ONLY, "passes": 2}}
    counted = replace(contender, session=replace(contender.session, options=options))
    assert RESTARTED not in notes(comparison, counted)
