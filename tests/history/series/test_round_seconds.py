"""How long rounds and passes of their own took, by what is recorded."""

from dataclasses import replace
from datetime import timedelta

from history.series.round_seconds import recorded_seconds
from history.store.records import EXACT, RUNNABLE, SessionStatus
from history.store.writer import Store
from tests.history.handmade import MACHINE, NIGHT, run_record, session_start


def test_means_of_rounds_and_of_passes_of_their_own(store: Store) -> None:
    start = session_start()
    options = {**start.options, EXACT: {"when": "first"}, "rounds": {"cap": 20}}
    session = store.start_session(replace(start, options=options))
    position = 0
    for number, seconds in ((1, 20), (2, 40), (21, 10)):
        for version in ("postgres@17.11", "postgres@18.6"):
            position += 1
            run = run_record(version=version, repetition=number, position=position)
            ended = NIGHT + timedelta(seconds=seconds)
            store.record_run(session, replace(run, started_at=NIGHT, ended_at=ended))
    store.finish_session(session, SessionStatus.FINISHED)
    with store.database.reading() as connection:
        found = recorded_seconds(connection, MACHINE.hostname, start.suite, start.profile)
        other = recorded_seconds(connection, "another host", start.suite, start.profile)
    assert (found.timed, found.counted) == ({"insert": 15.0}, {"insert": 5.0}), "for one version"
    assert not other.timed


def test_seconds_are_those_without_others_who_wanted_a_core(store: Store) -> None:
    """Beside four others on two cores two passes at once take three times as long, a round 2.5 times beyond
    its slices."""
    start = session_start()
    start = replace(start, machine=replace(start.machine, cores=2))
    options = {
        **start.options,
        "seconds": 4.0,
        RUNNABLE: 4.0,
        "versions": ["postgres@17.11", "postgres@18.6"],
        "rounds": {"cap": 20},
    }
    session = store.start_session(replace(start, options=options | {EXACT: {"when": "first"}}))
    for number in (1, 21):
        began = NIGHT + timedelta(seconds=50)
        run = run_record(repetition=number, position=number)
        store.record_run(session, replace(run, started_at=began, ended_at=began + timedelta(seconds=9)))
    store.finish_session(session, SessionStatus.FINISHED)
    with store.database.reading() as connection:
        found = recorded_seconds(connection, MACHINE.hostname, start.suite, start.profile)
    assert (found.timed, found.counted) == ({"insert": 4.0 + 5.0 / 2.5}, {"insert": 3.0})
    assert found.loading == 50.0 / 2 / 2.5
