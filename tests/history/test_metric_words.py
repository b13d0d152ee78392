"""The words for metrics: every metric that is shown has them, and no two share a column."""

import pytest

from history.comparison.explanation import imported_stand_ins
from history.metric_words import WORDS, label_of, moved_by, words_of
from suites.metrics import EVENTS, METRICS, OPERATION_TIME, PRIMARIES, followed_metrics


def test_every_metric_that_is_shown_has_its_words() -> None:
    assert WORDS.keys() <= METRICS.keys()
    shown = {*followed_metrics(), *imported_stand_ins().values(), OPERATION_TIME}
    exposures = {METRICS[name].counted_in for name in EVENTS}
    for name in METRICS:
        words, is_event = words_of(name), name in EVENTS
        assert words.label or name not in shown - {*PRIMARIES}, f"{name}: is shown without a label"
        assert (bool(words.event), bool(words.events)) == (is_event, is_event)
        assert not (name in exposures and "_" in label_of(name)), f"{name}: no word to count events in"


def test_columns_have_legends_and_orders_of_their_own() -> None:
    beside = followed_metrics()
    for name, words in WORDS.items():
        assert words.legend or not (words.column and name in beside), f"{name}: a column without legend"
        assert words.column or not words.gives_way, f"{name}: there is no column that could give way"
    ranks = [words.gives_way for words in WORDS.values() if words.gives_way]
    heads = [words.column for name, words in WORDS.items() if words.column and name in beside]
    assert len(ranks) == len(set(ranks))
    assert len(heads) == len(set(heads)), "two columns of one heading"


def test_a_metric_that_is_gone_is_called_by_its_name() -> None:
    assert label_of("bogus_per_op") == "bogus_per_op"


@pytest.mark.parametrize(
    ("name", "ratio", "moved"),
    [
        ("qps", 0.9, "slower"),
        ("qps", 1.1, "faster"),
        ("instructions_per_op", 1.049, "more instructions per query"),
        ("instructions_per_op", 0.9, "fewer instructions per query"),
        ("server_cpu_us_per_op", 0.9, "less server CPU per query"),
        ("table_bytes", 1.2, "more table bytes"),
        ("of_a_newer_tidemark", 1.2, "more of_a_newer_tidemark"),
    ],
)
def test_how_a_metric_moved(name: str, ratio: float, moved: str) -> None:
    assert moved_by(name, ratio) == moved
