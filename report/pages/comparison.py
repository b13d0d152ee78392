"""A comparison as one page to mail: verdicts, what they rest on, tab-separated values, how to repeat it."""

import csv
import io
from datetime import datetime

import htpy as h

from history.comparison.result import Comparison, ContenderComparison
from history.rendering.commands import COUNTED, DECIDED, quoted, run_again
from history.rendering.csv_text import render_csv
from history.rendering.notes import basis
from history.rendering.table import verdict_word
from report.charts.intervals import IntervalRow, interval_figure
from report.markup.formats import moment, typeset
from report.markup.frame import Page
from report.markup.metrics import described
from report.markup.parts import bullets, commands, facts, legend, section, tone_of
from report.pages.session import plain_sentence
from report.pages.verdicts import findings, plans, verdict_table


def comparison_page(comparison: Comparison) -> Page:
    """Return the page of a comparison. It stays with those who may read the history: it names the box."""
    contenders = ", ".join(dict.fromkeys(str(contender.contender) for contender in comparison.contenders))
    body = [
        *comparison_sections(comparison),
        legend(),
        commands(_commands(comparison)),
        section(
            "The numbers as tab-separated text",
            h.pre(tabindex="0", role="group", aria_label="tab-separated values")[tab_separated(comparison)],
        ),
    ]
    title = f"{contenders} against {comparison.base}"
    return Page("comparison.html", title, body, last_moment(comparison))


def comparison_sections(comparison: Comparison, heading: str = "") -> list[h.Node]:
    """Return a section for each contender; `heading` stands above it instead of the versions."""
    return [_contender(comparison, contender, heading) for contender in comparison.contenders]


def last_moment(comparison: Comparison) -> datetime | None:
    """Return the time of the newest data of a comparison; None without any."""
    ends = (contender.session.ended_at or contender.session.started_at for contender in comparison.contenders)
    return max(ends, default=None)


def _contender(comparison: Comparison, compared: ContenderComparison, heading: str) -> h.Node:
    session, machine = compared.session, compared.session.machine
    rows = []
    for step in compared.steps:
        interval = step.judged.interval
        rows.append(
            IntervalRow(
                step.step,
                step.judged.value,
                interval.low if interval else None,
                interval.high if interval else None,
                tone_of(step.judged.verdict),
                verdict_word(compared, step),
            )
        )
    place = f"{machine.hostname}, {machine.processor}, {machine.kernel}"
    return section(
        heading or f"{compared.contender} against {compared.base}",
        facts(
            (
                ("session", f"{session.uid}, {moment(session.started_at)}, {session.status}"),
                ("suite", f"{session.suite}, profile {session.profile}"),
                ("nights", str(len(compared.nights.started_at)) if compared.nights else None),
                ("box", place),
            )
        ),
        verdict_table(compared, lambda step: ""),
        findings(compared, str),
        plans(compared, str),
        interval_figure(
            rows,
            f"{described(compared.steps[0].judged.row)}: {compared.contender} over {compared.base}, "
            "with intervals",
            what="step",
            threshold=min(step.judged.threshold for step in compared.steps),
        )
        if rows
        else None,
        h.details(open=bool(compared.warnings))[
            h.summary["What the numbers rest on, and warnings"],
            bullets(dict.fromkeys(map(typeset, basis(comparison, compared)))),
        ],
        lead=plain_sentence(comparison, compared),
    )


def _commands(comparison: Comparison) -> list[str]:
    lines = []
    for contender in comparison.contenders:
        both = [str(contender.base), str(contender.contender)]
        if not contender.session.is_imported:
            is_counted = contender.session.only_counted or comparison.metric.is_counted
            how = COUNTED if is_counted else DECIDED
            lines += run_again(contender.session, both, [step.step for step in contender.steps], how)
        since = comparison.options.since
        chosen = ["--since", f"{since:%Y-%m-%d}"] if since else ["--session", contender.session.uid]
        metric = ["--metric", comparison.metric.name]
        lines.append(quoted(["./compare.py", *both, *chosen, *metric, "--costs"]))
    return list(dict.fromkeys(lines))


def tab_separated(comparison: Comparison) -> str:
    """Return what `--format csv` prints, with tabs, which a mail program leaves alone."""
    rows = csv.reader(io.StringIO(render_csv(comparison)))
    return "\n".join("\t".join(" ".join(cell.split()) for cell in row) for row in rows)
