"""The table of verdicts of a comparison, as a session's page and a mailed comparison have it."""

from collections.abc import Callable, Container, Iterator, Sequence

import htpy as h
from markupsafe import Markup

from history.comparison.beside.domain import domain_of
from history.comparison.findings.plans import changed_plans
from history.comparison.result import ContenderComparison, StepComparison
from history.comparison.verdict import Judged, MetricChange, Verdict
from history.metric_words import words_of
from history.numbers import DASH, two_decimals
from history.rendering.notes import findings_lines, unknown_lines
from history.rendering.table import word_of
from report.markup.formats import amount, bounds, mean_name, metric_name, share, typeset
from report.markup.metrics import described
from report.markup.parts import (
    SIGNS,
    bare_heat_cell,
    bullets,
    cell,
    cost_cell,
    has_moved,
    heat_cell,
    heat_of,
    numbers,
    numeric,
    row,
    section,
    table,
    tone_of,
    trade_badge,
    verdict_badge,
)
from suites.metrics import METRICS, Role

Address = Callable[[str], str]
"""Gives the page of a step; an empty text for none."""


_SEES = h.abbr(title="the smallest worsening that this session is likely to flag in the step")["sees"]


_UNEXPLAINED = h.abbr(title="costs explain less than half of the change: perhaps it waited")[" ?"]


def verdict_table(contender: ContenderComparison, address: Address) -> h.Node:
    """Return one row for each step: both values, the ratio with its interval, costs and the verdict."""
    columns = _columns(contender)
    heads: list[h.Node] = [
        "step",
        "base",
        "new",
        "ratio",
        "interval",
        *(
            h.abbr(title=f"{metric_name(column)}, {METRICS[column].unit}: contender over base")[_head(column)]
            for column in columns
        ),
        *([_SEES] if contender.has_visible else []),
        "verdict",
    ]
    rows = (_row(contender, step, columns, address) for step in contender.steps)
    foot = _means(contender, columns)
    caption = _caption(contender, contender.judged_metrics[0]) if contender.steps else ""
    return table(heads, rows, caption=caption, foot=foot, sortable=True, class_="moved verdicts")


def _caption(contender: ContenderComparison, metric: str) -> str:
    return f"{contender.contender} against {contender.base}: {described(METRICS[metric])}"


def table_beside(contender: ContenderComparison, metric: str) -> h.Node:
    """Return one row for each step as a metric beside the verdict judges it."""
    rows = [
        row(
            step.step,
            numbers((amount(judged.base), amount(judged.contender))),
            bare_heat_cell(heat_of(judged)),
            numbers([bounds(judged.interval)]),
            cell(_plain_verdict(contender, judged), f"verdict {tone_of(judged.verdict)}"),
            moved=has_moved(judged),
        )
        for step in contender.steps
        if (judged := step.by(metric)) is not None
    ]
    heads = ("step", "base", "new", "ratio", "interval", "verdict")
    return table(
        heads, rows, caption=_caption(contender, metric), sortable=True, class_="moved verdicts numbers"
    )


def findings(contender: ContenderComparison, cleared: Callable[[str], str]) -> h.Node:
    """Return what is certain beside the verdicts, what is unknown, and the domain; `cleared` hides names of
    boxes."""
    lines = [*findings_lines(contender.steps), *unknown_lines(contender, costs=True)]
    domain = domain_of(contender)
    return [
        section("Beside the verdicts", bullets(typeset(cleared(line)) for line in lines)) if lines else None,
        h.p(".quiet")[typeset(domain.text)] if domain is not None else None,
    ]


def _plain_verdict(contender: ContenderComparison, judged: Judged) -> str:
    if judged.verdict is None:
        return str(judged.gap)
    return f"{SIGNS[judged.verdict]} {word_of(contender, judged.verdict)}"


def _verdict(contender: ContenderComparison, step: StepComparison) -> Markup:
    judged = step.judged
    if step.is_trade:
        return cell(trade_badge(), "verdict worse")
    reason = h.span(".quiet")[f" {judged.reason}"] if judged.reason else None
    word = word_of(contender, judged.verdict) if judged.verdict is not None else judged.gap or ""
    badge = verdict_badge(judged.verdict, word)
    return cell(
        [badge, _UNEXPLAINED if step.is_unexplained else None, reason], f"verdict {tone_of(judged.verdict)}"
    )


def _row(
    contender: ContenderComparison, step: StepComparison, columns: tuple[str, ...], address: Address
) -> Markup:
    by_name = {ratio.metric: ratio for ratio in step.beside}
    href = address(step.step)
    visible = step.smallest_visible
    sees = share(visible)
    return row(
        h.a(href=href)[step.step] if href else step.step,
        numeric(amount(step.judged.base)),
        numeric(amount(step.judged.contender)),
        heat_cell(heat_of(step.judged)),
        cell(bounds(step.judged.interval), "n interval"),
        *(_cost(by_name.get(name)) for name in columns),
        *([numeric(sees)] if contender.has_visible else []),
        _verdict(contender, step),
        moved=has_moved(step.judged) or any(_is_decided(by_name.get(name)) for name in columns),
    )


def _is_decided(ratio: Judged | None) -> bool:
    return ratio is not None and ratio.change in (MetricChange.MORE, MetricChange.LESS)


def _cost(ratio: Judged | None) -> Markup:
    if ratio is None or not ratio.pairs:
        return cell(h.span(title="not recorded")[DASH], "cost quiet")
    unit = METRICS[ratio.metric].unit
    title = f"{metric_name(ratio.metric)}: {amount(ratio.base)} to {amount(ratio.contender)} {unit}"
    return cost_cell(ratio.metric, ratio.value, ratio.change, f"{title}, interval {bounds(ratio.interval)}")


def plans(contender: ContenderComparison, cleared: Callable[[str], str]) -> h.Node:
    """Return the whole plans of the steps whose plan changed; `cleared` says what of them may be shown."""
    return [
        h.details[
            h.summary[f"Plans of {plan.step}"],
            [
                [
                    h.h3[f"Plan of {side}"],
                    h.pre(tabindex="0", role="group", aria_label=f"plan of {side}")[cleared(text)],
                ]
                for side, text in plan.sides
            ],
        ]
        for plan in changed_plans(contender)
    ]


def _columns(contender: ContenderComparison) -> tuple[str, ...]:
    if not contender.steps:
        return ()
    beside = [ratio.metric for ratio in contender.steps[0].beside]
    recorded = {ratio.metric for step in contender.steps for ratio in step.beside if ratio.pairs}
    return tuple(name for name in beside if words_of(name).column and name in recorded)


def _head(metric: str) -> str:
    return words_of(metric).column or metric_name(metric)


def _means(contender: ContenderComparison, columns: tuple[str, ...]) -> Iterator[Markup]:
    count, ratios = contender.geometric_means()
    means = [(mean.group, mean.steps, mean.ratios) for mean in contender.group_means()]
    if count > 1:
        means.append(("", count, ratios))
    for name, steps, values in means:
        judged = next(iter(values.values()), None)
        yield row(
            mean_name(steps, name),
            cell(),
            cell(),
            numeric(two_decimals(judged)),
            cell(),
            *(numeric(two_decimals(values.get(column))) for column in columns),
            *([cell()] if contender.has_visible else []),
            cell(),
        )


COST_HEADS = ("metric", "unit", "base", "new", "ratio", "interval", "threshold", "verdict")
"""The columns of `cost_rows`."""


def meanings(help_page: str) -> h.Node:
    """Return the way to what all metrics are, below a table of many."""
    return h.p(".quiet")[h.a(href=f"{help_page}#metrics")["What these metrics are"]]


def cost_rows(
    step: StepComparison,
    role: Role,
    targets: Container[str] = (),
    where: Sequence[str] = (),
    word: Callable[[Verdict], str] = str,
) -> Iterator[Markup]:
    """Yield the rows of all metrics of a role; links to a metric of `targets` lead to its row.

    The cells of `where`, the same in every row, follow its head; `word` is what a verdict is called.
    """
    for ratio in step.metrics:
        if METRICS[ratio.metric].role is role and ratio.pairs:
            name = metric_name(ratio.metric)
            yield row(
                h.span(id=f"metric={ratio.metric}")[name] if ratio.metric in targets else name,
                *map(cell, where),
                cell(METRICS[ratio.metric].unit, "quiet"),
                numeric(amount(ratio.base)),
                numeric(amount(ratio.contender)),
                cost_cell(ratio.metric, ratio.value, ratio.change),
                cell(bounds(ratio.interval), "n interval"),
                numeric(share(ratio.threshold)),
                cell(word(ratio.verdict) if ratio.verdict is not None else str(ratio.gap)),
            )
