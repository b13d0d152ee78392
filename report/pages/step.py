"""The page of one step of a session: the same seconds, percentiles, costs, reset, functions, flame graphs."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import htpy as h

from history.comparison.profile_diff import Differential
from history.comparison.result import THRESHOLD, ContenderComparison, StepComparison
from history.rendering.profiles import quality
from history.stats.estimators import mean
from history.store.records import Run, RunStatus
from report import addresses
from report.charts.intervals import IntervalRow, interval_figure
from report.charts.seconds import RoundSeconds, seconds_figure
from report.markup.formats import amount, bounds, metric_name, moment, percent, share, unit_of
from report.markup.frame import Page
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
from report.pages.verdicts import cost_rows
from report.values.catalog import SessionEntry
from report.values.clearance import Clearance
from report.values.session_page import SessionPage, StepRuns
from suites.metric import Role
from suites.metrics import METRICS, PRIMARY, of_role

FUNCTIONS = 20

FlameGraphs = Callable[[str, str], Mapping[str, str]]
"""Gives the flame graphs of a step and a contender: what is shown and its address below the root."""


class _Both(NamedTuple):
    """A contender with its step in the comparison, if there is one."""

    base: str
    contender: str
    step: StepComparison | None


def step_page(values: SessionPage, step: StepRuns, clearance: Clearance, graphs: FlameGraphs) -> Page:
    """Return the page of a step."""
    root = addresses.way_to_root(addresses.step(values.entry.uid, step.step))
    pairs = _pairs(values, step)
    body: list[h.Node] = [_contender(values, step, both, clearance, root, graphs) for both in pairs]
    if not pairs:
        body.append(_alone(step))
    body.append(_failures(step, clearance))
    body.append(_runs(step))
    return _page(values.entry, step.step, body)


def pruned_step_page(values: SessionPage, step: str) -> Page:
    """Return the page of a step whose rounds were pruned: what the night kept of it, so that links stay."""
    kept = values.night_values.get(step, {})
    rows = (row(branch, numeric(amount(value))) for branch, value in sorted(kept.items()))
    body = [
        note("The rounds of this step were pruned: its seconds, latencies, costs and functions are gone."),
        table(("branch", "queries/s"), rows, caption="Queries per second that the night kept")
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
        _Both(str(one.base), str(one.contender), _of_step(one, step.step))
        for one in values.comparison.contenders
        if str(one.contender) in step.runs or str(one.base) in step.runs
    ]


def _of_step(contender: ContenderComparison, name: str) -> StepComparison | None:
    return next((step for step in contender.steps if step.step == name), None)


def _contender(
    values: SessionPage, step: StepRuns, both: _Both, clearance: Clearance, root: str, graphs: FlameGraphs
) -> h.Node:
    return section(
        f"{both.contender} against {both.base}",
        _verdict(both.step),
        _seconds(step, both, clearance),
        _rounds(step, both),
        _percentiles(step, both),
        _costs(both.step),
        _resets(step, both),
        _functions(values, step, both, root, graphs(step.step, both.contender)),
        id_=addresses.anchor(both.contender),
    )


def _verdict(step: StepComparison | None) -> h.Node:
    if step is None:
        return None
    judged = step.judged
    return facts(
        (
            ("verdict", verdict_badge(step.judged.verdict, step.judged.reason)),
            ("change", f"{percent(judged.value)} ({bounds(step.judged.interval)})"),
            ("values", f"{amount(judged.base)} to {amount(judged.contender)} {unit_of(judged.metric)}"),
            (
                "smallest visible change",
                share(step.smallest_visible) if step.smallest_visible else "never measured on this box",
            ),
            ("base's drift", percent(step.base_drift) if step.base_drift else None),
        )
    )


def _seconds(step: StepRuns, both: _Both, clearance: Clearance) -> h.Node:
    base, contender = (step.runs.get(one, {}) for one in (both.base, both.contender))
    numbers = sorted(base.keys() | contender.keys() | {one.repetition for one in step.dropped})
    rounds = []
    for number in numbers:
        old, new = (
            step.samples.get(one[number].id, ()) if number in one else () for one in (base, contender)
        )
        attempts = [
            (clearance.text(one.reason), one.measured) for one in step.dropped if one.repetition == number
        ]
        rounds.append(RoundSeconds(number, old, new, attempts))
    if not any(one.base or one.contender for one in rounds):
        return note("There is no throughput by second: it was imported, or its rounds were pruned.")
    return seconds_figure(
        rounds, both.base, both.contender, "The same seconds: queries per second, round by round"
    )


def _rounds(step: StepRuns, both: _Both) -> h.Node:
    rows = []
    for number, run in sorted(step.runs.get(both.contender, {}).items()):
        base = step.runs.get(both.base, {}).get(number)
        old, new = _value(base), _value(run)
        ratio = new / old if old and new else None
        reasons = "; ".join(filter(None, (one.failure or "" for one in (base, run) if one is not None)))
        rows.append(
            IntervalRow(f"round {number}", ratio, note="did not finish" if reasons else "", is_small=True)
        )
    judged = both.step
    if judged is not None and judged.judged.interval is not None:
        interval = judged.judged.interval
        tone = tone_of(judged.judged.verdict)
        rows.append(
            IntervalRow(
                "all rounds", interval.estimate, interval.low, interval.high, tone, "the verdict's interval"
            )
        )
    return (
        interval_figure(rows, "Ratio of each round, and of all", what="round", threshold=THRESHOLD / 100)
        if rows
        else None
    )


def _value(run: Run | None) -> float | None:
    return run.values.get(PRIMARY) if run is not None and run.status is RunStatus.FINISHED else None


def _percentiles(step: StepRuns, both: _Both) -> h.Node:
    names = [name for name in of_role(Role.LATENCY) if any(name in run.values for run in _all(step, both))]
    return _metric_table(step, both, names, "Latency of a transaction") if names else None


def _costs(step: StepComparison | None) -> h.Node:
    if step is None:
        return None
    rows = [*cost_rows(step, Role.COST), *cost_rows(step, Role.VARIATION)]
    if not rows:
        return None
    heads = ("metric", "unit", "base", "new", "ratio", "interval")
    return [
        h.h3["Costs per query, and variation"],
        table(heads, rows, caption="Costs per query, and variation"),
    ]


def _resets(step: StepRuns, both: _Both) -> h.Node:
    names = [name for name in of_role(Role.RESET) if any(name in run.values for run in _all(step, both))]
    return _metric_table(step, both, names, "The reset after the step") if names else None


def _metric_table(step: StepRuns, both: _Both, names: Sequence[str], caption: str) -> h.Node:
    rows = []
    for name in names:
        old, new = (_mean(step, version, name) for version in (both.base, both.contender))
        ratio = new / old if old and new else None
        rows.append(
            row(
                metric_name(name),
                cell(METRICS[name].unit, "quiet"),
                *(numeric(text) for text in (amount(old), amount(new), percent(ratio))),
            )
        )
    heads = ("metric", "unit", "base", "new", "change")
    return [h.h3[caption], table(heads, rows, caption=f"{caption}, means of the rounds")]


def _mean(step: StepRuns, version: str, name: str) -> float | None:
    values = [run.values[name] for run in step.runs.get(version, {}).values() if name in run.values]
    return mean(values) if values else None


def _all(step: StepRuns, both: _Both) -> list[Run]:
    return [run for one in (both.base, both.contender) for run in step.runs.get(one, {}).values()]


def _functions(
    values: SessionPage, step: StepRuns, both: _Both, root: str, graphs: Mapping[str, str]
) -> h.Node:
    profiled = step.differentials.get(both.contender)
    if profiled is None:
        return note(
            "No CPU profile was recorded: ", h.code["--perf"], " records one at the end of each step."
        )
    before, after = (
        addresses.digest(values.entry.uid, step.step, one) for one in (both.base, both.contender)
    )
    return [
        h.h3["Functions: CPU time per query"],
        function_table(profiled),
        h.p(".quiet")[f"base: {quality(profiled.base)}"],
        h.p(".quiet")[f"new: {quality(profiled.contender)}"],
        h.p[
            h.a(href=f"{root}{addresses.PROFILES}#a={before}&b={after}")["Compare the stacks in the browser"]
        ],
        [_graph(f"{root}{address}", what) for what, address in graphs.items()],
    ]


def function_table(profiled: Differential, count: int = FUNCTIONS) -> h.Node:
    """Return the functions whose own CPU time changed most."""
    whole = profiled.contender_total - profiled.base_total
    totals = (amount(profiled.base_total), amount(profiled.contender_total), _signed(whole))
    rows = [row("whole server", *(numeric(text) for text in totals), cell(), cell())]
    rows += [
        row(
            h.code[one.name[:80]],
            numeric(amount(one.base.own)),
            numeric(amount(one.contender.own)),
            numeric(_signed(one.own_change)),
            numeric(share(one.own_share, 0)),
            cell("certain" if one.is_certain else "within its error"),
        )
        for one in [one for one in profiled.functions if one.base.own or one.contender.own][:count]
    ]
    heads = (
        "function",
        "base, µs/query",
        "new, µs/query",
        "change, µs/query",
        "share of the change",
        "certainty",
    )
    return table(heads, rows, caption="CPU time per query by function, largest change first")


def _graph(address: str, what: str) -> h.Node:
    return h.details(".flames")[
        h.summary[f"Flame graph: {what}"],
        h.iframe(src=address, title=f"Flame graph: {what}", sandbox="allow-scripts", loading="lazy"),
        h.p[h.a(href=address)["Open it alone"]],
    ]


def _alone(step: StepRuns) -> h.Node:
    rows = (
        row(version, numeric(str(number)), numeric(amount(_value(run))))
        for version, by_round in step.runs.items()
        for number, run in sorted(by_round.items())
    )
    return table(("version", "round", "queries/s"), rows, caption="Rounds of this step")


def _failures(step: StepRuns, clearance: Clearance) -> h.Node:
    failed = [run for one in step.runs.values() for run in one.values() if run.failure]
    if not failed:
        return None
    items = (
        h.li[f"{run.version}, round {run.repetition}, {run.status}: {clearance.text(run.failure or '')}"]
        for run in failed
    )
    return section("What did not finish", h.ul[items])


def _runs(step: StepRuns) -> h.Node:
    metrics = sorted({name for one in step.runs.values() for run in one.values() for name in run.values})
    columns = [
        (version, number, run) for version, one in step.runs.items() for number, run in sorted(one.items())
    ]
    rows = (
        row(name, cell(unit_of(name)), numbers(amount(run.values.get(name)) for _, _, run in columns))
        for name in metrics
    )
    heads = ("metric", "unit", *(f"{version}, round {number}" for version, number, _ in columns))
    return h.details[
        h.summary["Every value of every round"],
        table(heads, rows, caption="Every value of every round", class_="numbers"),
    ]


def _signed(value: float) -> str:
    return f"{value:+.3g}".replace("-", "\N{MINUS SIGN}")
