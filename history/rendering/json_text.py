"""A comparison as JSON."""

from typing import Any

from history.comparison.beside.curves import Curve, curves, shapes
from history.comparison.beside.domain import domain_of
from history.comparison.beside.overhead import Overhead, overheads
from history.comparison.compare import exit_code
from history.comparison.findings.plans import ChangedPlan, changed_plans
from history.comparison.findings.rare_events import few_errors
from history.comparison.kinds import KindComparison
from history.comparison.pairs import Failure
from history.comparison.result import Comparison, ContenderComparison, Mean, Nights, StepComparison
from history.comparison.verdict import Judged
from history.escaping.json_strings import json_text
from history.numbers import rounded
from history.rendering.profiles import function_values
from history.stats.estimators import Interval
from suites.metrics import METRICS


def render_json(comparison: Comparison) -> str:
    """Return a comparison as one JSON object, with numbers to nine digits."""
    metric, options = comparison.metric, comparison.options
    whole = {
        "base": str(comparison.base),
        "metric": metric.name,
        "threshold_percent": comparison.threshold_percent,
        "confidence_percent": options.confidence_percent,
        "history": comparison.history,
        "exit_code": exit_code(comparison),
        "contenders": [_contender(contender) for contender in comparison.contenders],
    }
    return json_text(whole, indent=2) + "\n"


def _contender(contender: ContenderComparison) -> dict[str, Any]:
    session = contender.session
    count, means = contender.geometric_means()
    return {
        "base": str(contender.base),
        "contender": str(contender.contender),
        "nights": contender.nights and _nights(contender.nights),
        "session": {
            "uid": session.uid,
            "suite": session.suite,
            "profile": session.profile,
            "status": session.status,
            "started_at": session.started_at.isoformat(),
            "ended_at": session.ended_at and session.ended_at.isoformat(),
            "repetitions": session.repetitions,
            "looks": contender.looks and {"first": contender.looks[0], "last": contender.looks[1]},
            **({"layouts": session.layouts} if session.layouts else {}),
            "durability": session.durability,
            **session.declared.options,
            **({"warmed_up": warmed} if (warmed := _warmth(contender)) else {}),
            "machine": session.machine.hostname,
            "cpu_model": session.machine.cpu_model,
            "cores": session.machine.cores,
        },
        "steps": [_step(step) for step in contender.steps],
        "domain": _domain(contender),
        "few_errors": [
            {"step": events.step, "metric": events.metric, "text": events.text(session.round_name)}
            for events in few_errors(contender.paired)
        ],
        "changed_plans": [_plan(plan) for plan in changed_plans(contender)],
        **({"kinds": [_kind(kind) for kind in contender.kinds]} if contender.kinds else {}),
        "curves": [_curve(curve) for curve in curves(contender)],
        "overheads": [_overhead(overhead) for overhead in overheads(contender)],
        "geometric_mean": {"ratio": rounded(next(iter(means.values()))), "steps": count},
        "group_means": [_group(mean, contender.steps[0].judged.metric) for mean in contender.group_means()],
        "calibrations": sorted({noise.session for noise in contender.calibrations}),
        "dropped_rounds": [vars(dropped) for dropped in contender.dropped],
        "failures": [_failure(failure) for failure in contender.failures],
        "warnings": contender.warnings,
    }


def _warmth(contender: ContenderComparison) -> dict[str, Any]:
    """Return how servers warmed up before the steps that are compared; over nights nothing."""
    steps = {step.step for step in contender.steps} if contender.nights is None else set()
    found = contender.session.warmth.items()
    return {step: warmth.as_option() for step, warmth in found if step in steps}


def _failure(failure: Failure) -> dict[str, Any]:
    names = ("version", "step", "repetitions", "status", "reason")
    return {name: getattr(failure, name) for name in names}


def _overhead(overhead: Overhead) -> dict[str, Any]:
    bounds = {"low": rounded(overhead.low), "high": rounded(overhead.high)}
    return {"step": overhead.step, "value": rounded(overhead.value), **bounds}


def _domain(contender: ContenderComparison) -> dict[str, Any] | None:
    found = domain_of(contender)
    if found is None:
        return None
    known = {name: value for name, value in vars(found).items() if name != "clients"}
    return {**known, "clients": [*found.clients], "not_seen": [*found.unseen], "text": found.text}


def _query_time(step: StepComparison) -> dict[str, Any] | None:
    """Return by what fractions of its time in the base a query takes longer, and what explains them."""
    time = step.query_time
    if time is None or step.explained_by is None:
        return None
    explained = {metric: rounded(part) for metric, (_, part) in time.explained.items()}
    return {"longer": rounded(time.longer), "explained": explained, "rest": rounded(time.rest)}


def _plan(plan: ChangedPlan) -> dict[str, Any]:
    return {
        "step": plan.step,
        "text": plan.text,
        "seconds": None if plan.seconds is None else [*map(rounded, plan.seconds)],
        **dict(zip(("base", "contender"), (text for _, text in plan.sides), strict=True)),
    }


def _curve(curve: Curve) -> dict[str, Any]:
    base, contender = (shape and vars(shape) for shape in shapes(curve))
    steps = [level.comparison.step for level in curve.levels]
    return {"step": curve.step, "steps": steps, "base": base, "contender": contender}


def _nights(nights: Nights) -> dict[str, Any]:
    return {
        "configuration": nights.configuration,
        "started_at": [time.isoformat() for time in nights.started_at],
        "base_versions": dict(nights.bases),
        "contender_versions": dict(nights.contenders),
        **({"past": nights.past} if nights.past else {}),
        "gaps": [{**vars(gap), "nights": [night.isoformat() for night in gap.nights]} for gap in nights.gaps],
    }


def _group(mean: Mean, judged: str) -> dict[str, Any]:
    ratios = {metric: rounded(value) for metric, value in mean.ratios.items()}
    return {"group": mean.group, "steps": mean.steps, "ratio": ratios[judged], "ratios": ratios}


def _step(step: StepComparison) -> dict[str, Any]:
    judged = step.judged
    return {
        "step": step.step,
        "group": step.group or None,
        "verdict": judged.verdict,
        "gap": judged.gap,
        "reason": judged.reason,
        "doubts": judged.doubts,
        "pairs": judged.pairs,
        "interval": _interval(judged.interval),
        "explained_by": step.explained_by,
        "query_time": _query_time(step),
        "variation": step.variation,
        "smallest_visible": rounded(step.smallest_visible),
        "base_drift": rounded(step.base_drift),
        "trend": [rounded(ratio) for ratio in step.trend],
        "gained": [function_values(function) for function in step.gained],
        "client_time": _client_time(step),
        "metrics": {ratio.metric: metric_values(ratio) for ratio in step.metrics},
        "trade": step.is_trade,
        "findings": [vars(found) for found in step.findings],
        "unknown": [judged.metric for judged in step.unknown],
    }


def _client_time(step: StepComparison) -> dict[str, Any] | None:
    """Return the client time per query in µs by wait event or stage, largest certain change first."""
    time = step.client_time
    if time is None:
        return None
    events = [
        {
            "event": event.name,
            "is_wait": event.name in time.waits,
            "base": rounded(event.base.own),
            "contender": rounded(event.contender.own),
            "change": rounded(event.own_change),
            "change_interval": None if event.own_interval is None else [*map(rounded, event.own_interval)],
            "is_certain": event.is_certain,
        }
        for event in time.events
    ]
    interval = None if time.interval is None else [*map(rounded, time.interval)]
    return {"change": rounded(time.change), "change_interval": interval, "events": events}


def metric_values(ratio: Judged) -> dict[str, Any]:
    """Return the values and the ratio of one metric; what is not finite is None."""
    metric = METRICS[ratio.metric]
    return {
        "unit": metric.unit,
        "better": metric.better,
        "base": rounded(ratio.base),
        "contender": rounded(ratio.contender),
        "ratio": rounded(ratio.value),
        "interval": _interval(ratio.interval),
        "pairs": ratio.pairs,
        "change": ratio.change,
    }


def _interval(interval: Interval | None) -> dict[str, float | None] | None:
    return None if interval is None else {"low": rounded(interval.low), "high": rounded(interval.high)}


def _kind(kind: KindComparison) -> dict[str, Any]:
    beside = {**kind.latencies, kind.throughput.metric: kind.throughput}
    return {
        "step": kind.step,
        "kind": kind.kind,
        "metric": kind.judged.metric,
        "base": rounded(kind.judged.base),
        "contender": rounded(kind.judged.contender),
        "ratio": rounded(kind.judged.value),
        "interval": _interval(kind.judged.interval),
        "verdict": kind.judged.verdict,
        "gap": kind.judged.gap,
        "pairs": kind.judged.pairs,
        "metrics": {name: metric_values(judged) for name, judged in beside.items() if judged.pairs},
        "retried": [rounded(share) for share in kind.retried],
        "refused": [rounded(share) for share in kind.refused],
    }
