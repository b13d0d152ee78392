"""The page of one step of a session: the same seconds, percentiles, costs, reset, functions, flame graphs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import htpy as h

from history.comparison.pairs import StepPairs
from history.comparison.result import ContenderComparison, StepComparison
from history.comparison.rounds.background import why_left_out
from history.comparison.verdict import Judged
from history.counts import plural_of
from history.rendering.profiles import quality
from history.rendering.table import word_of
from history.stats.estimators import mean
from history.store.records import Run, RunStatus
from report import addresses
from report.charts.intervals import IntervalRow, interval_figure
from report.charts.seconds import RoundSeconds, seconds_figure
from report.markup.formats import amount, bounds, change_of, metric_name, moment, share, typeset, unit_of
from report.markup.frame import Page
from report.markup.metrics import described, metric_choice, metric_part
from report.markup.parts import (
    cell,
    facts,
    note,
    numbers,
    numeric,
    row,
    section,
    table,
    tone_of,
    verdict_badge,
)
from report.pages.profiles.client_time import client_time_table
from report.pages.profiles.functions import function_table
from report.pages.verdicts import COST_HEADS, cost_rows, meanings
from report.values.catalog import SessionEntry
from report.values.clearance import Clearance
from report.values.session_page import SessionPage, StepRuns
from suites.metrics import METRICS, Metric, Role, judged_metrics, of_role

BESIDE = (Role.COST, Role.VARIATION, Role.RESET, Role.CONTEXT)
"""The roles of the metrics that are compared beside those that have a part of the page, in this order."""

FlameGraphs = Callable[[str, str], Mapping[str, str]]
"""Gives the flame graphs of a step and a contender: what is shown and its address below the root."""


class _Both(NamedTuple):
    """A contender with its step in the comparison, if there is one."""

    compared: ContenderComparison
    base: str
    contender: str
    step: StepComparison | None
    pairs: StepPairs | None


def step_page(values: SessionPage, step: StepRuns, clearance: Clearance, graphs: FlameGraphs) -> Page:
    """Return the page of a step."""
    root = addresses.way_to_root(addresses.step(values.entry.uid, step.step))
    pairs = _pairs(values, step)
    metrics = dict.fromkeys(judged.metric for both in pairs for judged in _judged(both))
    body: list[h.Node] = [metric_choice([METRICS[name] for name in metrics])]
    targets, in_rows = set(metrics), set(judged_metrics()) - metrics.keys()
    for both in pairs:
        body.append(_contender(values, step, both, clearance, root, graphs, targets, in_rows))
        targets -= {judged.metric for judged in _judged(both)}
        in_rows -= {judged.metric for judged in (both.step.beside if both.step else ()) if judged.pairs}
    if not pairs:
        body.append(_alone(step, values.metric))
    body.append(_failures(step, clearance))
    body.append(_runs(step, root))
    return _page(values.entry, step.step, body)


def pruned_step_page(values: SessionPage, step: str) -> Page:
    """Return the page of a step whose rounds were pruned: what the night kept of it, so that links stay."""
    kept = values.night_values.get(step, {})
    rows = (row(branch, numeric(amount(value))) for branch, value in sorted(kept.items()))
    body = [
        note(
            f"The {values.session.round_name}s of this step were pruned: its seconds, latencies, costs and "
            "functions are gone."
        ),
        table(
            ("branch", values.metric.unit), rows, caption=f"{described(values.metric)}: what the night kept"
        )
        if kept
        else None,
    ]
    return _page(values.entry, step, body)


def _page(entry: SessionEntry, step: str, body: h.Node) -> Page:
    return Page(
        addresses.step(entry.uid, step),
        f"{step} in session {entry.uid}",
        body,
        entry.ended_at or entry.started_at,
        heading=[step, h.span(".quiet")[f" {moment(entry.started_at)}"]],
        crumbs=(("Sessions", addresses.SESSIONS), (f"Session {entry.uid}", addresses.session(entry.uid))),
    )


def _pairs(values: SessionPage, step: StepRuns) -> list[_Both]:
    if values.comparison is None:
        return []
    return [
        _Both(
            compared,
            str(compared.base),
            str(compared.contender),
            _of_step(compared, step.step),
            next((pairs for pairs in compared.paired if pairs.step == step.step), None),
        )
        for compared in values.comparison.contenders
        if str(compared.contender) in step.runs or str(compared.base) in step.runs
    ]


def _of_step(contender: ContenderComparison, name: str) -> StepComparison | None:
    return next((step for step in contender.steps if step.step == name), None)


def _contender(
    values: SessionPage,
    step: StepRuns,
    both: _Both,
    clearance: Clearance,
    root: str,
    graphs: FlameGraphs,
    targets: Collection[str],
    in_rows: Collection[str],
) -> h.Node:
    """Return what is known of a contender; links to a metric of `targets` or `in_rows` lead here."""
    return section(
        f"{both.contender} against {both.base}",
        *(_by_metric(step, both, judged, targets) for judged in _judged(both)),
        _seconds(values, step, both, clearance),
        _percentiles(step, both),
        _costs(both, in_rows),
        _resets(step, both),
        _client_time(both.step),
        _functions(values, step, both, root, graphs(step.step, both.contender)),
        id_=addresses.anchor(both.contender),
    )


def _judged(both: _Both) -> list[Judged]:
    """Return a step as the metric of the session judges it, and as counts do; other metrics are costs."""
    if both.step is None:
        return []
    found = (both.step.by(metric.metric) for metric in both.step.beside if metric.row.judged)
    beside = [judged for judged in found if judged is not None and judged.row.is_counted]
    return [both.step.judged, *beside]


def _by_metric(step: StepRuns, both: _Both, judged: Judged, targets: Collection[str]) -> h.Node:
    content = (_verdict(both, judged), _rounds(step, both, judged))
    return metric_part(judged.row, *content, is_target=judged.metric in targets)


def _verdict(both: _Both, judged: Judged) -> h.Node:
    assert both.step is not None
    step, is_own = both.step, judged is both.step.judged
    is_timed = judged.row.role is Role.THROUGHPUT
    why = ": ".join(filter(None, (judged.gap, judged.reason)))
    word = word_of(both.compared, judged.verdict) if judged.verdict is not None else why
    reason = judged.reason if judged.verdict is not None else None
    return facts(
        (
            ("metric", described(judged.row)),
            ("verdict", verdict_badge(judged.verdict, word)),
            ("but", reason),
            ("change", f"{change_of(judged.value)} ({bounds(judged.interval)})" if judged.value else None),
            ("values", f"{amount(judged.base)} to {amount(judged.contender)} {judged.unit}"),
            ("threshold", share(judged.threshold)),
            (plural_of(judged.observed), str(judged.pairs)),
            ("smallest visible change", _visible(step, judged) if is_own else None),
            ("base's drift", change_of(step.base_drift) if step.base_drift and is_timed else None),
        )
    )


def _visible(step: StepComparison, judged: Judged) -> str:
    if judged.row.is_counted:
        return f"{share(judged.threshold)}, its threshold"
    return share(step.smallest_visible) if step.smallest_visible else "never measured on this box"


def _seconds(values: SessionPage, step: StepRuns, both: _Both, clearance: Clearance) -> h.Node:
    base, contender = (step.runs.get(version, {}) for version in (both.base, both.contender))
    numbers = sorted(base.keys() | contender.keys() | {attempt.repetition for attempt in step.dropped})
    rounds = []
    for number in numbers:
        old, new = (
            step.samples.get(runs[number].id, ()) if number in runs else () for runs in (base, contender)
        )
        attempts = [
            (clearance.text(attempt.reason), attempt.measured)
            for attempt in step.dropped
            if attempt.repetition == number
        ]
        of_base, of_contender = (
            step.activities.get(runs[number].id, ()) if number in runs else () for runs in (base, contender)
        )
        rounds.append(RoundSeconds(number, old, new, attempts, of_base, of_contender, step.round_name))
    if not any(drawn.base or drawn.contender for drawn in rounds):
        return note(f"There is no throughput by second: {_why_no_seconds(values, step, both)}.")
    caption = f"The same seconds: queries per second, {step.round_name} by {step.round_name}"
    return seconds_figure(rounds, both.base, both.contender, caption)


def _why_no_seconds(values: SessionPage, step: StepRuns, both: _Both) -> str:
    if values.session.is_imported:
        return "imported tables have none"
    runs = _all(step, both)
    if not any(run.status is RunStatus.FINISHED for run in runs):
        return f"no {step.round_name} finished, {', '.join(sorted({str(run.status) for run in runs}))}"
    if values.session.only_counted:
        return "instructions were counted, and nothing was timed"
    return "none was recorded"


def _rounds(step: StepRuns, both: _Both, judged: Judged) -> h.Node:
    """Return the ratio of each round or pass by a metric, and that of all that count."""
    rows, left_out = list[IntervalRow](), why_left_out(both.pairs, judged.metric) if both.pairs else {}
    for number, run in sorted(step.runs.get(both.contender, {}).items()):
        base = step.runs.get(both.base, {}).get(number)
        old, new = _value(base, judged.row), _value(run, judged.row)
        ratio = new / old if old and new else None
        ended = {
            str(measured.status) for measured in (base, run) if measured is not None and measured.failure
        }
        if ratio is not None or ended:
            label, remark = f"{judged.observed} {number}", left_out.get(number, "")
            tone = "quiet" if remark else "plain"
            remarks = ", ".join(filter(None, (*sorted(ended), remark)))
            rows.append(IntervalRow(label, ratio, tone=tone, note=remarks, is_small=True))
    interval = judged.interval
    if interval is not None:
        label = f"{'other' if left_out else 'all'} {plural_of(judged.observed)}"
        ends = (interval.estimate, interval.low, interval.high)
        rows.append(IntervalRow(label, *ends, tone_of(judged.verdict), "the verdict's interval"))
    if not rows:
        return None
    caption = f"{metric_name(judged.metric)}: ratio of each {judged.observed}, and of all"
    if left_out:
        caption = f"{caption} but the {len(left_out)} that autovacuum reached"
    return interval_figure(rows, caption, what=judged.observed, threshold=judged.threshold)


def _value(run: Run | None, metric: Metric) -> float | None:
    return run.values.get(metric.name) if run is not None and run.status is RunStatus.FINISHED else None


def _percentiles(step: StepRuns, both: _Both) -> h.Node:
    names = [name for name in of_role(Role.LATENCY) if any(name in run.values for run in _all(step, both))]
    return _metric_table(step, both, names, "Latency of a transaction") if names else None


def _costs(both: _Both, targets: Collection[str]) -> h.Node:
    step = both.step
    if step is None:
        return None
    rows = [
        found
        for role in BESIDE
        for found in cost_rows(step, role, targets, word=partial(word_of, both.compared))
    ]
    if not rows:
        return None
    title = "Costs per query, variation, resets, starts and memory"
    return [h.h3[title], table(COST_HEADS, rows, caption=title)]


def _resets(step: StepRuns, both: _Both) -> h.Node:
    compared = {judged.metric for judged in (both.step.beside if both.step else ()) if judged.pairs}
    names = [
        name
        for name in of_role(Role.RESET)
        if name not in compared and any(name in run.values for run in _all(step, both))
    ]
    return _metric_table(step, both, names, "More of the reset after the step") if names else None


def _metric_table(step: StepRuns, both: _Both, names: Sequence[str], caption: str) -> h.Node:
    rows = []
    for name in names:
        old, new = (_mean(step, version, name) for version in (both.base, both.contender))
        ratio = new / old if old and new else None
        rows.append(
            row(
                metric_name(name),
                cell(METRICS[name].unit, "quiet"),
                *(numeric(text) for text in (amount(old), amount(new), change_of(ratio))),
            )
        )
    heads = ("metric", "unit", "base", "new", "change")
    return [h.h3[caption], table(heads, rows, caption=f"{caption}, means of the {step.round_name}s")]


def _mean(step: StepRuns, version: str, name: str) -> float | None:
    values = [run.values[name] for run in step.runs.get(version, {}).values() if name in run.values]
    return mean(values) if values else None


def _all(step: StepRuns, both: _Both) -> list[Run]:
    return [run for version in (both.base, both.contender) for run in step.runs.get(version, {}).values()]


def _client_time(step: StepComparison | None) -> h.Node:
    time = None if step is None else step.client_time
    return None if time is None else [h.h3["Waits: client time per query"], client_time_table(time)]


def _functions(
    values: SessionPage, step: StepRuns, both: _Both, root: str, graphs: Mapping[str, str]
) -> h.Node:
    profiled = step.differentials.get(both.contender)
    if profiled is None:
        return note(
            "No CPU profile was recorded: ", h.code["--perf"], " records one at the end of each step."
        )
    return [
        h.h3["Functions: CPU time per query"],
        function_table(profiled),
        h.p(".quiet")[f"base: {typeset(quality(profiled.base))}"],
        h.p(".quiet")[f"new: {typeset(quality(profiled.contender))}"],
        [_graph(f"{root}{address}", what) for what, address in graphs.items()],
    ]


def _graph(address: str, what: str) -> h.Node:
    return h.details(".flames")[
        h.summary[f"Flame graph: {what}"],
        h.iframe(src=address, title=f"Flame graph: {what}", sandbox="allow-scripts", loading="lazy"),
        h.p[h.a(href=address)["Open it alone"]],
    ]


def _alone(step: StepRuns, metric: Metric) -> h.Node:
    rows = (
        row(version, numeric(str(number)), numeric(amount(_value(run, metric))))
        for version, by_round in step.runs.items()
        for number, run in sorted(by_round.items())
    )
    caption = f"{step.round_name.capitalize()}s of this step: {described(metric)}"
    return table(("version", step.round_name, metric.unit), rows, caption=caption)


def _failures(step: StepRuns, clearance: Clearance) -> h.Node:
    failed = [run for by_round in step.runs.values() for run in by_round.values() if run.failure]
    if not failed:
        return None
    items = (
        h.li[
            f"{run.version}, {step.round_name} {run.repetition}, {run.status}: "
            f"{clearance.text(run.failure or '')}"
        ]
        for run in failed
    )
    return section("What did not finish", h.ul[items])


def _runs(step: StepRuns, root: str) -> h.Node:
    metrics = sorted(
        {name for by_round in step.runs.values() for run in by_round.values() for name in run.values}
    )
    columns = [
        (version, number, run)
        for version, by_round in step.runs.items()
        for number, run in sorted(by_round.items())
    ]
    rows = (
        row(name, cell(unit_of(name)), numbers(amount(run.values.get(name)) for _, _, run in columns))
        for name in metrics
    )
    heads = ("metric", "unit", *(f"{version}, {step.round_name} {number}" for version, number, _ in columns))
    title = f"Every value of every {step.round_name}"
    return h.details[
        h.summary[title],
        table(heads, rows, caption=title, class_="numbers"),
        meanings(f"{root}{addresses.HELP}"),
    ]
