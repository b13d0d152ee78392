#!/bin/sh
""":"  # A shell runs the next line and never comes further: the launcher knows the right Python.
exec "$(dirname -- "$0")/tidemark" compare "$@"

Compare versions in the history and judge each step: `./compare.py BASE CONTENDER...`.

Exit codes follow diff(1): 0 nothing regressed, 1 a regression, 2 trouble, which is also what missing, failed,
too few and inconclusive repetitions are.
"""

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from build.errors import TidemarkError
from build.home import locate
from build.version import Version, parse_version
from history.comparison import (
    CONFIDENCE,
    THRESHOLD,
    CompareOptions,
    Comparison,
    ComparisonError,
    ContenderComparison,
    StepComparison,
    compare,
    exit_code,
)
from history.judging import Judgement, Ratio, Verdict
from history.pairing import Failure
from history.statistics import Interval
from history.store import open_store
from suites.measurement import METRICS

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "CONFIDENCE",
    "THRESHOLD",
    "CompareOptions",
    "Comparison",
    "Verdict",
    "compare",
    "exit_code",
    "main",
    "render_csv",
    "render_json",
    "render_markdown",
    "render_terminal",
]

PLAIN_WIDTH = 100
"""Columns of a table that goes to a file or a pipe."""

_MEAN_ROW = "geometric mean of"

# Heads of narrow columns; every other metric keeps its name.
_HEADS = {
    "server_cpu_us_per_op": "CPU",
    "server_cs_per_op": "cs",
    "server_written_kb_per_op": "wrt",
    "wal_bytes_per_op": "WAL",
    "latency_p99_ms": "p99",
    "qps_cv": "cv",
}
_LEGEND = (
    "Ratios are contender/base. Per query: CPU time of the server, its context switches (cs), KiB written "
    "(wrt), WAL or redo bytes; p99 latency; cv, how much QPS varies from second to second: less is better."
)
_CSV_HEADS = (
    *("session", "suite", "profile", "base", "contender", "step", "metric", "unit", "better"),
    *("base_value", "contender_value", "ratio", "low", "high", "pairs", "verdict", "gap", "reason"),
)
_STYLES = {
    Verdict.REGRESSION: "bold red",
    Verdict.IMPROVEMENT: "green",
    Verdict.UNCHANGED: "dim",
    Verdict.INCONCLUSIVE: "yellow",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Compare what the arguments name, print it, and return the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        with open_store(_existing(arguments.history)) as store:
            comparison = compare(store, arguments.base, arguments.contenders, _options(arguments))
    except TidemarkError as error:
        print(f"tidemark compare: {error}", file=sys.stderr)
        return 2
    _print(comparison, arguments.format)
    return exit_code(comparison)


def render_terminal(comparison: Comparison, console: "Console") -> None:
    """Print a table and its notes per contender."""
    for contender in comparison.contenders:
        console.print(_title(comparison, contender), style="bold", markup=False)
        console.print(_rich_table(contender))
        console.print()
        for note in (_LEGEND, *_notes(comparison, contender)):
            console.print(note, markup=False, highlight=False)
        console.print()


def render_markdown(comparison: Comparison) -> str:
    """Tables and notes as GitHub renders them."""
    return "\n".join(line for each in comparison.contenders for line in _markdown(comparison, each)) + "\n"


def render_json(comparison: Comparison) -> str:
    """Everything a comparison holds, as one JSON object; numbers to nine digits."""
    metric, options = comparison.metric, comparison.options
    whole = {
        "base": str(comparison.base),
        "metric": metric.name,
        "threshold_percent": options.threshold_percent,
        "confidence_percent": options.confidence_percent,
        "history": comparison.history,
        "exit_code": exit_code(comparison),
        "contenders": [_contender_object(each) for each in comparison.contenders],
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def render_csv(comparison: Comparison) -> str:
    """One line per contender, step and metric; only the judged metric has interval and verdict."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_CSV_HEADS)
    for contender in comparison.contenders:
        lines.writerows(_csv_rows(comparison, contender))
    return text.getvalue()


# --- what terminal and Markdown share


def _title(comparison: Comparison, contender: ContenderComparison) -> str:
    base, metric = comparison.base, comparison.metric
    title = f"{contender.contender} against {base}: {metric.name} ({metric.unit})"
    if contender.contender.engine is base.engine:
        return title
    durability = contender.session.durability
    return f"{title}; configuration and durability ({durability}) are part of the comparison"


def _heads(contender: ContenderComparison) -> list[str]:
    beside = [_HEADS[each.metric] for each in contender.steps[0].beside]
    return ["step", "base", "contender", "rel", "interval", *beside, "verdict"]


def _rows(contender: ContenderComparison) -> Iterator[list[str]]:
    for step in contender.steps:
        interval = step.judgement.interval
        yield [
            step.step,
            _amount(step.judged.base),
            _amount(step.judged.contender),
            _two_decimals(step.judged.value),
            _range(interval),
            *(_two_decimals(each.value) for each in step.beside),
            _verdict(step.judgement),
        ]
    count, means = contender.geometric_means()
    relative, *beside = map(_two_decimals, means)
    yield [f"{_MEAN_ROW} {count}", "", "", relative, "", *beside, ""]


def _verdict(judgement: Judgement) -> str:
    return str(judgement.verdict or judgement.gap)


def _two_decimals(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _range(interval: Interval | None) -> str:
    """Both bounds; when they are powers of ten apart their digits say nothing."""
    if interval is None:
        return "–"
    return "very wide" if interval.high > 100 * interval.low else f"{interval.low:.2f}–{interval.high:.2f}"


def _amount(value: float | None) -> str:
    """Four digits at least, and never an exponent."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def _notes(comparison: Comparison, contender: ContenderComparison) -> list[str]:
    """Where the numbers come from, how they were judged, and everything that is wrong with them."""
    session, options, machine = contender.session, comparison.options, contender.session.machine
    gaps: dict[str, list[str]] = {}
    for step in contender.steps:
        if step.judgement.gap:
            gaps.setdefault(step.judgement.reason, []).append(step.step)
    return [
        f"Session {session.uid} ({session.status}), {session.started_at:%Y-%m-%d %H:%M} UTC: suite "
        f"{session.suite}, profile {session.profile}, {session.repetitions} repetitions; "
        f"{machine.hostname}, {machine.cpu_model}, {machine.cores} cores.",
        f"Intervals of {contender.judged_steps} of {len(contender.steps)} steps, which all hold together "
        f"with {options.confidence_percent:g} % confidence; threshold {options.threshold_percent:g} %.",
        f"History: {comparison.history}",
        *(f"no verdict: {', '.join(steps)}: {reason}" for reason, steps in gaps.items()),
        *map(_failure, contender.failures),
        *(f"warning: {text}" for text in contender.warnings),
    ]


def _failure(failure: Failure) -> str:
    repetitions = ", ".join(map(str, failure.repetitions))
    reason = " ".join(failure.reason.split())
    return f"{failure.status}: {failure.step}, {failure.version}, repetition {repetitions}: {reason}"


# --- one format each


def _rich_table(contender: ContenderComparison) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    heads = _heads(contender)
    for head in heads:
        left = head in ("step", "verdict")
        table.add_column(head, justify="left" if left else "right", no_wrap=head != "step", overflow="fold")
    styles = {str(verdict): style for verdict, style in _STYLES.items()}
    for row in _rows(contender):
        if row[0].startswith(_MEAN_ROW):
            table.add_section()
        *cells, verdict = row
        table.add_row(*map(Text, cells), Text(verdict, style=styles.get(verdict, "yellow")))
    return table


def _markdown(comparison: Comparison, contender: ContenderComparison) -> Iterator[str]:
    yield f"### {_title(comparison, contender)}"
    yield ""
    heads = _heads(contender)
    yield _markdown_row(heads)
    yield _markdown_row([":--" if head in ("step", "verdict") else "--:" for head in heads])
    for row in _rows(contender):
        marked = f"**{row[-1]}**" if row[-1] == Verdict.REGRESSION else row[-1]
        yield _markdown_row([*row[:-1], marked])
    yield ""
    for note in (_LEGEND, *_notes(comparison, contender)):
        yield f"- {note}"
    yield ""


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _contender_object(contender: ContenderComparison) -> dict[str, Any]:
    session = contender.session
    count, means = contender.geometric_means()
    return {
        "contender": str(contender.contender),
        "session": {
            "uid": session.uid,
            "suite": session.suite,
            "profile": session.profile,
            "status": session.status,
            "started_at": session.started_at.isoformat(),
            "ended_at": session.ended_at and session.ended_at.isoformat(),
            "repetitions": session.repetitions,
            "durability": session.durability,
            "machine": session.machine.hostname,
            "cpu_model": session.machine.cpu_model,
            "cores": session.machine.cores,
        },
        "steps": [_step_object(step) for step in contender.steps],
        "geometric_mean": {"ratio": _rounded(means[0]), "steps": count},
        "failures": [vars(failure) for failure in contender.failures],
        "warnings": contender.warnings,
    }


def _step_object(step: StepComparison) -> dict[str, Any]:
    judgement, interval = step.judgement, step.judgement.interval
    return {
        "step": step.step,
        "verdict": judgement.verdict,
        "gap": judgement.gap,
        "reason": judgement.reason,
        "pairs": judgement.pairs,
        "interval": interval and {"low": _rounded(interval.low), "high": _rounded(interval.high)},
        "metrics": {each.metric: _ratio_object(each) for each in (step.judged, *step.beside)},
    }


def _ratio_object(ratio: Ratio) -> dict[str, Any]:
    metric = METRICS[ratio.metric]
    numbers = {"base": ratio.base, "contender": ratio.contender, "ratio": ratio.value}
    return {"unit": metric.unit, "better": metric.better} | {
        name: _rounded(value) for name, value in numbers.items()
    }


def _csv_rows(comparison: Comparison, contender: ContenderComparison) -> Iterator[list[Any]]:
    session = contender.session
    origin = [session.uid, session.suite, session.profile, str(comparison.base), str(contender.contender)]
    for step in contender.steps:
        judgement, interval = step.judgement, step.judgement.interval
        bounds = [_rounded(interval.low), _rounded(interval.high)] if interval else [None, None]
        said = [*bounds, judgement.pairs, judgement.verdict, judgement.gap, judgement.reason]
        for ratio in (step.judged, *step.beside):
            ending = said if ratio is step.judged else [None] * len(said)
            yield [*origin, step.step, ratio.metric, *_ratio_object(ratio).values(), *ending]


def _rounded(value: float | None) -> float | None:
    """To nine digits: more would differ between mathematical libraries."""
    return None if value is None else float(f"{value:.9g}")


# --- the command line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tidemark compare",
        description="Compare versions of the latest session that holds both, and judge each step.",
        epilog="exit codes: 0 nothing regressed; 1 a regression; 2 trouble, or missing or inconclusive data",
    )
    add = parser.add_argument
    add("base", metavar="BASE", type=_version, help="engine@ref, such as postgres@17.11")
    add("contenders", metavar="CONTENDER", type=_version, nargs="+", help="engine@ref to judge against BASE")
    add("--suite", help="only sessions of this suite")
    add("--profile", help="only sessions of this profile")
    add("--session", metavar="UID", help="this session instead of the latest")
    add("--step", action="append", default=[], help="only this step; may be repeated")
    add("--metric", default="qps", choices=METRICS, metavar="METRIC", help="what to judge (default: qps)")
    add("--threshold", type=_percent, default=THRESHOLD, metavar="PERCENT", help="default: %(default)g")
    add("--confidence", type=_percent, default=CONFIDENCE, metavar="PERCENT", help="default: %(default)g")
    add("--format", choices=("terminal", "markdown", "json", "csv"), default="terminal")
    add("--history", metavar="PATH", help="default: history.db in Tidemark's output folder")
    return parser


def _version(text: str) -> Version:
    try:
        return parse_version(text)
    except TidemarkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _percent(text: str) -> float:
    value = float(text)
    if not 0 < value < 100:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 100")
    return value


def _options(arguments: argparse.Namespace) -> CompareOptions:
    return CompareOptions(
        suite=arguments.suite,
        profile=arguments.profile,
        session=arguments.session,
        steps=tuple(arguments.step),
        metric=arguments.metric,
        threshold_percent=arguments.threshold,
        confidence_percent=arguments.confidence,
    )


def _existing(history: str | None) -> Path | str:
    """The history to open; looking at one must not create it."""
    if history and "://" in history:
        return history
    path = Path(history) if history else locate().history
    if not path.is_file():
        raise ComparisonError("there is no history yet", where=str(path), hint="./tidemark demo writes one")
    return path


def _print(comparison: Comparison, chosen: str) -> None:
    if chosen != "terminal":
        write = {"markdown": render_markdown, "json": render_json, "csv": render_csv}[chosen]
        sys.stdout.write(write(comparison))
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    render_terminal(comparison, console)


if __name__ == "__main__":
    sys.exit(main())
