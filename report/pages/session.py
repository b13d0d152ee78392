"""The page of a session: what it measured, its verdicts as `compare` prints them, its warnings."""

from collections.abc import Iterator
from functools import partial

import htpy as h

from build.progress import in_words
from history.comparison.result import Comparison, ContenderComparison
from history.counts import counted
from history.rendering.commands import quoted, run_again
from history.rendering.summary import sentence
from history.stats.estimators import geometric_mean
from history.store.records import Session
from report import addresses
from report.markup.formats import amount, moment, typeset
from report.markup.frame import Page
from report.markup.metrics import described, metric_parts
from report.markup.parts import bullets, commands, facts, legend, note, numbers, numeric, section, table
from report.pages.verdicts import findings, plans, table_beside, verdict_table
from report.values.catalog import SessionEntry, SessionKind
from report.values.clearance import Clearance
from report.values.session_page import SessionPage
from suites.control_groups.declared import Declared
from suites.metrics import METRICS, Metric

KINDS = {
    SessionKind.NIGHT: "a night of the nightly service",
    SessionKind.COMPARISON: "not a night: it has no version of a branch",
    SessionKind.CONFIRMATION: "it measured two commits of a branch side by side, to confirm a change",
    SessionKind.BISECT: "rounds of a bisect",
    SessionKind.CALIBRATION: "one version against itself, to learn how noisy the steps are",
    SessionKind.IMPORTED: "results of another tool, or of a table",
}

BY_HAND = "measured by hand; it has a base and a branch, so that its values are in their series"
"""What a session is that became a night, and that nightly did not measure."""


def session_page(values: SessionPage, clearance: Clearance, *, linked: bool = True) -> Page:
    """Return the page of a session; `linked` is False for one to mail."""
    entry = values.entry
    path = addresses.session(entry.uid)
    root = addresses.way_to_root(path) if linked else None
    body: list[h.Node] = [_facts(values, clearance, root)]
    if values.comparison is not None:
        contenders = values.comparison.contenders
        body.append(metric_parts(_parts(values, clearance, root)))
        body.append(legend())
        more = len(entry.versions) - 1 - len(contenders)
        if more > 0:
            body.append(note(f"{counted(more, 'more contender')} of this session are not compared here."))
    else:
        body.append(_without_comparison(values, root))
    body.append(_reproduce(values, clearance))
    return Page(
        path,
        f"Session {entry.uid}",
        body,
        entry.ended_at or entry.started_at,
        heading=["Session ", h.code[entry.uid]],
        crumbs=(("Sessions", addresses.SESSIONS),),
    )


def _kind(entry: SessionEntry) -> str:
    is_by_hand = entry.kind is SessionKind.NIGHT and not entry.is_by_service
    return BY_HAND if is_by_hand else KINDS[entry.kind]


def _facts(values: SessionPage, clearance: Clearance, root: str | None) -> h.Node:
    entry, session = values.entry, values.session
    machine = clearance.machine(session.machine)
    gib = machine.memory_bytes / 2**30
    return facts(
        (
            (
                "measured",
                f"{moment(entry.started_at)} to {moment(entry.ended_at) if entry.ended_at else 'now'}",
            ),
            ("status", entry.outcome),
            ("kind", f"{entry.kind}: {_kind(entry)}"),
            ("box", _link(root, addresses.machine(machine.hostname), machine.hostname)),
            ("machine", f"{machine.processor}, {gib:.0f} GiB, {machine.kernel}"),
            ("suite", f"{session.suite}, profile {session.profile}, durability {session.durability}"),
            *_declared(session.declared),
            (f"{session.round_name}s", _planned(values)),
            *_warmed_up(session, clearance),
            ("judged by", described(values.metric)),
            (
                "tools",
                ", ".join(f"{name} {version}" for name, version in clearance.tools(session.tools).items()),
            ),
            (
                "setup",
                _link(root, addresses.setup(entry.uid), "settings and builds")
                if values.setups and root is not None
                else None,
            ),
        )
    )


def _declared(declared: Declared) -> Iterator[tuple[str, str]]:
    if declared.memory:
        yield "memory", f"{declared.memory} for each server, page cache included"
    if declared.disk:
        yield "disk", f"at most {declared.disk} for each server, of reads and of writes each"


def _warmed_up(session: Session, clearance: Clearance) -> Iterator[tuple[str, str]]:
    steps = [
        f"{step} {': '.join([in_words(warmth.seconds), *map(clearance.text, warmth.lacking)])}"
        for step, warmth in session.warmth.items()
    ]
    if steps:
        yield "warmed up", f"each version before the first block: {', '.join(steps)}"


def _planned(values: SessionPage) -> str:
    session = values.session
    if session.is_imported:
        return f"up to {session.repetitions} of a step, imported"
    passes = f"{counted(session.counted_passes, 'counted pass', 'counted passes')} planned"
    if session.only_counted:
        return passes
    return f"{session.repetitions} planned{f', {passes}' if session.counted_passes else ''}"


def _link(root: str | None, path: str, text: str) -> h.Node:
    """Return a link to a page of the site, or its text alone on a page to mail."""
    return h.a(href=f"{root}{path}")[text] if root is not None else text


def _parts(values: SessionPage, clearance: Clearance, root: str | None) -> Iterator[tuple[Metric, h.Node]]:
    """Yield what each metric says of the contenders: a page to mail has the one of the session alone."""
    assert values.comparison is not None
    contenders = values.comparison.contenders
    metrics = dict.fromkeys(name for contender in contenders for name in contender.judged_metrics)
    for number, metric in enumerate(metrics if root is not None else list(metrics)[:1]):
        make = partial(_beside, metric) if number else partial(_contender, values, clearance)
        yield METRICS[metric], [make(contender, root) for contender in contenders]


def _beside(metric: str, contender: ContenderComparison, root: str | None) -> h.Node:
    del root
    heading = f"{contender.contender} against {contender.base}"
    return section(heading, table_beside(contender, metric))


def _contender(
    values: SessionPage, clearance: Clearance, contender: ContenderComparison, root: str | None
) -> h.Node:
    assert values.comparison is not None
    uid = values.entry.uid

    def address(step: str) -> str:
        return f"{root}{addresses.step(uid, step)}" if root is not None else ""

    lines = [clearance.text(line) for line in values.notes[str(contender.contender)]]
    return section(
        f"{contender.contender} against {contender.base}",
        verdict_table(contender, address),
        findings(contender, clearance.text),
        plans(contender, clearance.text),
        h.details(open=bool(contender.warnings))[
            h.summary["What the numbers rest on, and warnings"],
            bullets(dict.fromkeys(map(typeset, lines))),
        ],
        id_=addresses.anchor(str(contender.contender)),
        lead=plain_sentence(values.comparison, contender),
    )


def plain_sentence(comparison: Comparison, contender: ContenderComparison) -> str:
    """Return the sentence on a contender as `compare --format summary` has it, without its Markdown."""
    text = sentence(comparison, contender).replace("\N{WORD JOINER}", "").replace("\\", "")
    return typeset(text.partition(": ")[2] or text)


def _without_comparison(values: SessionPage, root: str | None) -> h.Node:
    why = note(f"There is nothing to compare in this session: {values.why_none}.")
    if values.steps:
        return [why, _single(values, root)]
    if not values.night_values and not values.night_gaps:
        return why
    branches = sorted({branch for value in values.night_values.values() for branch in value})
    rows = (
        h.tr[
            h.th(scope="row")[step],
            numbers(amount(value.get(branch)) for branch in branches),
        ]
        for step, value in values.night_values.items()
    )
    kept = (
        table(
            ("step", *branches),
            rows,
            caption=f"{described(values.metric)}: what the night kept",
            class_="numbers",
        )
        if branches
        else None
    )
    lacking = bullets(
        f"{branch}{f', {step}' if step else ''}: {reason}" for branch, step, reason in values.night_gaps
    )
    return [why, section("What its night kept", kept, lacking)]


def _single(values: SessionPage, root: str | None) -> h.Node:
    metric = values.metric
    rows = (
        h.tr[
            h.th(scope="row")[_link(root, addresses.step(values.entry.uid, step.step), step.step)],
            h.td[version],
            numeric(str(len(by_round))),
            numeric(amount(geometric_mean([run.values.get(metric.name, 0.0) for run in by_round.values()]))),
        ]
        for step in values.steps
        for version, by_round in step.runs.items()
    )
    heads = ("step", "version", f"{values.session.round_name}s", metric.unit)
    return table(heads, rows, caption=f"Steps of this session: {described(metric)}")


def _reproduce(values: SessionPage, clearance: Clearance) -> h.Node:
    session, entry = values.session, values.entry
    if session.is_imported or not entry.versions:
        return None
    lines = []
    if not clearance.is_public:
        lines = run_again(session, entry.versions, [step.step for step in values.steps])
    if values.comparison is not None:
        lines.append(quoted(["./compare.py", *entry.versions, "--session", entry.uid, "--costs"]))
    return commands(lines) if lines else None
