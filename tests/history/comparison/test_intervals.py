"""One rule for all intervals of a session: who shares the error, who lends noise, and what can be seen."""

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.output.intervals import ratio_interval
from history.comparison.intervals import Intervals, looks_of
from history.comparison.pairs import StepPairs, pair_steps
from history.comparison.priors import priors_of
from history.comparison.verdict import Gap, MetricChange, Verdict, judge_beside, judge_step
from history.stats.contrary_evidence import Doubt
from history.stats.noise_model import OWN_WANDER_CAUTION, Noise, pooled_noise, wander_of
from history.stats.repeated_intervals import Design, sequential_interval
from history.store.records import Run, RunStatus, Session, SessionStatus, StepNoise
from runners.cli import parser
from runners.commands import calibrate
from runners.measuring.sequential_verdicts import SequentialVerdicts
from suites.metrics import METRICS
from tests.history.handmade import NIGHT, session_start

QPS = METRICS["qps"]
FIXED = None
UNTIL_DECIDED = (3, 20)


def step_of(name: str, logs: Sequence[float], metric: str = "qps") -> StepPairs:
    """A step whose rounds have these log ratios."""
    runs = [
        Run(0, version, "", name, 1, number, 0, RunStatus.FINISHED, None, {metric: 1000 * math.exp(log)})
        for number, log in enumerate(logs, start=1)
        for version, log in (("base", 0.0), ("new", log))
    ]
    (step,) = pair_steps(runs, "base", "new")
    return step


ONE = step_of("one", [0.01, -0.02, 0.005, 0.012])
TWO = step_of("two", [-0.03, 0.04, 0.02, -0.05])
SHORT = step_of("short", [0.01, 0.02])

QUIET = step_of("write@1", [0.001, -0.002, 0.003, -0.001])
OTHER_QUIET = step_of("read@1", [0.002, -0.003, 0.001, -0.001])
NOISY = step_of("write@64", [0.08, 0.09, 0.085, 0.075])

logs = st.lists(st.floats(-0.2, 0.2), min_size=3, max_size=20)


def test_steps_that_followed_a_decided_one_lend_it_no_noise() -> None:
    first, second = step_of("first", ONE.log_ratios("qps") or ()), step_of("second", [0.2, -0.2, 0.1, -0.3])
    alone = Intervals([first], 0.98, UNTIL_DECIDED, in_turn=True)
    both = Intervals([first, second], 0.98, UNTIL_DECIDED, in_turn=True)
    at_once = Intervals([first, second], 0.98, UNTIL_DECIDED)
    found = [intervals.of(first, "qps") for intervals in (alone, both, at_once)]
    # The error is shared by the number of steps, which is another one.
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].error == found[1].error
    assert found[2] is not None
    assert found[2].error != found[1].error
    assert both.of(second, "qps") == at_once.of(second, "qps")


# --- a number of rounds that was fixed beforehand


@pytest.mark.parametrize("looks", [FIXED, UNTIL_DECIDED])
def test_a_level_lends_its_noise_to_no_other_level(looks: tuple[int, int] | None) -> None:
    # Four rounds of 64 clients that agree by chance are no more sure beside a quiet level.
    beside = Intervals([QUIET, NOISY], 0.95, looks)
    others = [replace(OTHER_QUIET, step=f"{name}@1") for name in ("read", "scan", "insert")]
    alike = Intervals([QUIET, *others], 0.95, looks)
    (found, alone), (lent, own) = (
        (intervals.of(step, "qps"), sequential_interval(step.log_ratios("qps") or (), its_design, None))
        for intervals, step in ((beside, NOISY), (alike, QUIET))
        for its_design in [intervals.design("qps", 4)]
    )
    assert found == alone
    assert lent is not None
    assert own is not None
    assert lent.high / lent.low < own.high / own.low, "steps of one level still pool theirs"


@given(logs)
def test_a_step_alone_has_the_plain_interval_unless_it_wanders(rounds: list[float]) -> None:
    step = step_of("alone", rounds)
    found, plain = Intervals([step], 0.95, FIXED).of(step, "qps"), ratio_interval(*step.values("qps"), 0.95)
    assert found is not None
    assert plain is not None
    wider = math.sqrt(1 + wander_of([rounds], OWN_WANDER_CAUTION))
    middle = math.log(plain.estimate)
    low, high = (middle + wider * (math.log(end) - middle) for end in (plain.low, plain.high))
    assert math.log(found.low) == pytest.approx(low, abs=1e-6, rel=1e-6)
    assert math.log(found.high) == pytest.approx(high, abs=1e-6, rel=1e-6)


def test_levels_lend_each_other_their_noise_if_all_are_calibrated() -> None:
    known = {"write@1": Noise(0.002, 9), "write@64": Noise(0.08, 9)}
    logs = {step.step: step.log_ratios("qps") or () for step in (QUIET, NOISY)}
    pooled = pooled_noise(list(logs.values()), list(known.values()))
    assert priors_of(logs, known) == dict(zip(logs, pooled, strict=True))
    half = {"write@64": known["write@64"]}
    assert priors_of(logs, half)["write@64"] == pooled_noise([logs["write@64"]], [known["write@64"]])[0]


def test_steps_with_an_interval_share_the_error_and_others_do_not() -> None:
    intervals = Intervals([ONE, TWO, SHORT], 0.95, FIXED)
    assert intervals.design("qps", 4) == Design(steps=2, least=4, cap=4, confidence=0.95)
    assert intervals.design("tps", 4).steps == 1, "a metric that nobody has"


def test_other_steps_lend_their_noise() -> None:
    rounds = [step.log_ratios("qps") or [] for step in (ONE, TWO, SHORT)]
    prior = pooled_noise(rounds)[0]
    assert prior is not None
    design = Design(steps=2, least=4, cap=4, confidence=0.95)
    assert Intervals([ONE, TWO, SHORT], 0.95, FIXED).of(ONE, "qps") == sequential_interval(
        rounds[0], design, prior
    )


# --- rounds until verdicts stood


def test_every_step_of_the_session_shares_the_error_of_all_looks() -> None:
    intervals = Intervals([ONE, TWO, SHORT], 0.95, UNTIL_DECIDED)
    assert intervals.design("qps", 4) == Design(steps=3, least=3, cap=20, confidence=0.95)
    assert Intervals([ONE], 0.95, (3, 5)).design("qps", 7).cap == 7, "more rounds than planned"


def decided_as_measured(
    rounds: Mapping[str, Sequence[float]], cap: int, calibrated: Mapping[str, Noise]
) -> tuple[dict[str, Verdict], list[StepPairs]]:
    """Round by round as a session does it: the verdict by which each step stopped, and what was measured."""
    deciding = SequentialVerdicts("base", ["new"], Design(len(rounds), 3, cap, 0.98), 0.02, calibrated)
    verdicts, measured = dict.fromkeys(rounds, Verdict.INCONCLUSIVE), dict.fromkeys(rounds, 0)
    still_open = list(rounds)
    for number in range(1, cap + 1):
        for name in still_open:
            if number <= len(rounds[name]):
                deciding.add(name, number, {"base": 1000.0, "new": 1000 * math.exp(rounds[name][number - 1])})
                measured[name] = number
        if number >= 3:
            verdicts |= {name: deciding.verdicts("new", number)[name] for name in still_open}
            still_open = deciding.open_steps(still_open, number)
    return verdicts, [step_of(name, rounds[name][: measured[name]]) for name in rounds]


def read(steps: Sequence[StepPairs], cap: int, calibrated: Mapping[str, Noise]) -> dict[str, Verdict | None]:
    intervals = Intervals(steps, 0.98, (3, cap), lambda metric: calibrated)
    return {step.step: judge_step(step, QPS, 0.02, intervals).verdict for step in steps}


@pytest.mark.deep("hundreds of simulated sessions")
@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.0, -0.03, -0.05, 0.05]), st.sampled_from([0.002, 0.01, 0.02, 0.06])
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 2**32 - 1),
)
def test_the_verdict_that_stops_a_step_is_the_one_that_is_read(
    kinds: list[tuple[float, float]], seed: int
) -> None:
    """Whatever the other steps showed in the rounds that they got afterwards."""
    rng = random.Random(seed)
    rounds = {f"step-{place}": [rng.gauss(*kind) for _ in range(12)] for place, kind in enumerate(kinds)}
    calibrated = {"step-0": Noise(0.01, 9)}
    verdicts, steps = decided_as_measured(rounds, 12, calibrated)
    assert read(steps, 12, calibrated) == verdicts


def test_rounds_that_others_got_later_change_no_verdict() -> None:
    """One step is decided after a few rounds; in those that follow the machine turns out to be noisy."""
    quiet = [-0.05, -0.052, -0.049, -0.051, -0.05, -0.05, -0.051, -0.049]
    loud = [0.01, -0.011, 0.0, 0.002, *[0.3, -0.3] * 8]
    verdicts, steps = decided_as_measured({"one": quiet, "two": loud}, 20, {})
    assert len(steps[0].pairs) < len(quiet)
    assert len(steps[1].pairs) == 20
    assert verdicts["one"] is Verdict.REGRESSION
    assert read(steps, 20, {})["one"] is Verdict.REGRESSION
    then = step_of("two", loud[: len(steps[0].pairs)])
    assert read([steps[0], then], 20, {})["one"] is Verdict.REGRESSION


def test_a_verdict_that_the_rounds_contradict_is_not_given_while_measuring_or_reading() -> None:
    """All steps rise from round to round; one is slower, by its interval alone certainly."""
    rising = [0.004 * (place - 6) + 0.002 * (-1) ** place for place in range(13)]
    rounds = {"one": [log - 0.09 for log in rising], **{f"other-{n}": rising for n in range(3)}}
    steps = [step_of(name, logs) for name, logs in rounds.items()]
    judgement = judge_step(steps[0], QPS, 0.02, Intervals(steps, 0.98, None))
    assert (judgement.verdict, judgement.doubts) == (Verdict.INCONCLUSIVE, (Doubt.DRIFTING,))
    assert judgement.reason == "the ratios of all steps drift from round to round"
    assert judgement.interval is not None
    narrow = Intervals(steps, 0.98, None).of(steps[0], "qps")
    assert narrow is not None
    assert narrow.high < 1, "by the interval alone it would be a regression"
    assert judgement.interval.high == 1, "which that with the objection is not"
    assert judgement.interval.low == narrow.low < math.exp(min(rounds["one"]))
    measured = judge_beside(steps[0], "qps", 0.02, Intervals(steps, 0.98, None))
    assert measured.change is MetricChange.UNKNOWN
    nights = judge_step(steps[0], QPS, 0.02, Intervals(steps, 0.98, None, counted="night"))
    assert nights.reason == "the ratios of all steps drift from night to night"


def test_the_size_of_a_change_is_corrected_for_being_called_one() -> None:
    quiet = [step_of(f"quiet-{n}", [0.008 * (-1) ** (k + n) for k in range(20)]) for n in range(4)]
    barely = step_of("barely", [-0.0225 + 0.008 * (-1) ** k for k in range(20)])
    judgement = judge_step(barely, QPS, 0.02, Intervals([barely, *quiet], 0.98, UNTIL_DECIDED))
    assert judgement.verdict is Verdict.REGRESSION
    assert judgement.interval is not None
    assert math.exp(-0.0225) < judgement.interval.estimate <= judgement.interval.high < 1
    clear = step_of("clear", [-0.2 + 0.008 * (-1) ** k for k in range(20)])
    judgement = judge_step(clear, QPS, 0.02, Intervals([clear, *quiet], 0.98, UNTIL_DECIDED))
    assert judgement.interval is not None
    assert math.log(judgement.interval.estimate) == pytest.approx(-0.2, abs=1e-4)


def test_before_the_first_look_there_are_too_few_rounds() -> None:
    judgement = judge_step(ONE, QPS, 0.02, Intervals([ONE], 0.95, (6, 20)))
    assert (judgement.gap, judgement.reason) == (
        Gap.TOO_FEW,
        "4 paired rounds: a verdict needs 6, run 2 more",
    )


@pytest.mark.parametrize(
    ("plan", "looks"),
    [
        (None, None),
        ({"least": 3, "cap": 3, "until_decided": False}, None),
        ({"least": 5, "cap": 20, "until_decided": True}, (5, 20)),
        ({"least": 1, "cap": 20, "until_decided": True}, (3, 20)),
    ],
)
def test_a_session_says_how_it_looked(plan: object, looks: tuple[int, int] | None) -> None:
    start = replace(session_start(), options={"rounds": plan} if plan else {})
    session = Session(**vars(start), id=1, status=SessionStatus.FINISHED, started_at=NIGHT, ended_at=NIGHT)
    assert looks_of(session) == looks


# --- what can be seen


def test_what_a_step_can_show_is_by_its_rounds_or_by_the_most() -> None:
    quiet = Noise(0.01, 20)
    fixed = Intervals([ONE], 0.98, FIXED).smallest_visible(ONE, QPS, 0.02, quiet)
    most = Intervals([ONE], 0.98, UNTIL_DECIDED).smallest_visible(ONE, QPS, 0.02, quiet)
    assert fixed == pytest.approx(0.0247, abs=1e-4)
    assert most == pytest.approx(0.0221, abs=1e-4)


def test_a_calibration_says_the_same_of_as_many_rounds() -> None:
    """It reckoned with looks after every round for a number of rounds that is fixed in advance."""
    steps = [replace(step_of("one", [0.01, -0.02, 0.005]), step=name) for name in ("update-index", "delete")]
    noise = {step.step: StepNoise(step.step, "qps", 0.01, 20.0, 21) for step in steps}
    request = calibrate.request_of(parser().parse_args(["calibrate", "postgres@18.6", "--profile", "smoke"]))
    selected = [step for step in request.steps if step.name in noise]
    _, *rows = calibrate.table(replace(request, steps=tuple(selected)), noise)
    few, most = (int(word) for word in re.findall(r"\d+(?= rounds)", rows[-1]))
    assert (few, most) == (3, UNTIL_DECIDED[1])
    for looks, column in ((FIXED, -4), (UNTIL_DECIDED, -2)):
        visible = Intervals(steps, 0.98, looks).smallest_visible(steps[0], QPS, 0.02, noise["delete"].noise)
        assert visible is not None
        assert rows[0].split()[column] == f"{100 * visible:.1f}"


def test_what_cannot_be_known() -> None:
    fixed, quiet = Intervals([ONE, SHORT], 0.98, FIXED), Noise(0.01, 20)
    assert fixed.smallest_visible(ONE, QPS, 0.02, None) is None
    assert fixed.smallest_visible(SHORT, QPS, 0.02, quiet) is None
    assert fixed.smallest_visible(ONE, METRICS["transactions"], 0.02, quiet) is None


@given(st.floats(1e-4, 0.3), st.floats(1, 60), st.floats(0.001, 0.2))
def test_more_noise_shows_less_and_never_less_than_the_threshold(
    sd: float, df: float, threshold: float
) -> None:
    intervals = Intervals([ONE], 0.98, UNTIL_DECIDED)
    seen, louder = (
        intervals.smallest_visible(ONE, QPS, threshold, Noise(sd_of_round, df))
        for sd_of_round in (sd, sd * 1.5)
    )
    assert seen is not None
    assert louder is not None
    assert threshold < seen < louder < 1


def test_of_a_metric_that_should_be_low_it_is_an_increase() -> None:
    latency = METRICS["latency_p99_ms"]
    step = step_of("one", [0.0] * 4, latency.name)
    intervals, loud = Intervals([step], 0.98, UNTIL_DECIDED), Noise(0.5, 20)
    less = intervals.smallest_visible(step_of("one", [0.0] * 4), QPS, 0.02, loud)
    more = intervals.smallest_visible(step, latency, 0.02, loud)
    assert less is not None
    assert more is not None
    assert (1 - less) * (1 + more) == pytest.approx(1)
