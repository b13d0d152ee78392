"""The page of a box, and the list of boxes."""

from collections.abc import Sequence
from dataclasses import replace

import htpy as h

from history.counts import counted
from history.rendering.changes import box_note_lines
from report import addresses
from report.charts.intervals import IntervalRow, interval_figure
from report.markup.formats import day, metric_name, moment, share
from report.markup.frame import Page
from report.markup.metrics import named
from report.markup.parts import bullets, facts, note, numeric, section, stat, table
from report.values.catalog import Catalog
from report.values.machine_page import MachinePage, MachinePeriod

MAX_DISTURBED = 60


def machine_page(values: MachinePage, catalog: Catalog) -> Page:
    """Return the page of a box."""
    box = catalog.clearance.box(values.box)
    path = addresses.machine(box)
    root = addresses.way_to_root(path)
    body = [
        _now(values, catalog),
        h.ul(".stats")[
            stat(str(values.nights), "nights"),
            stat(str(len(values.failed)), "nights that failed", "worse" if values.failed else ""),
            stat(str(len(values.missed)), "missed nights", "worse" if values.missed else ""),
            stat(
                str(sum(sum(session.steps.values()) for session in values.disturbed)),
                "disturbed rounds, measured again",
            ),
            stat(str(len(values.periods)), "fingerprint" if len(values.periods) == 1 else "fingerprints"),
        ],
        _noise(values, catalog),
        _sees(values, root),
        _periods(values, catalog, root),
        _disturbed(values, catalog, root),
        section("Nights that failed", note(", ".join(f"{night:%Y-%m-%d}" for night in values.failed)))
        if values.failed
        else None,
        section(
            "Missed nights",
            note(", ".join(f"{night:%Y-%m-%d}" for night in values.missed))
            if values.missed
            else note("No night is missing between the first and the last."),
        ),
    ]
    last = max(
        (
            entry.ended_at or entry.started_at
            for entry in catalog.sessions.values()
            if entry.box == values.box
        ),
        default=None,
    )
    return Page(
        path,
        f"Box {box}",
        body,
        last,
        heading=["Box ", h.code[box]],
        crumbs=(("Machines", addresses.MACHINES),),
    )


def machines_page(boxes: Sequence[MachinePage], catalog: Catalog) -> Page:
    """Return the list of boxes."""
    root = addresses.way_to_root(addresses.MACHINES)
    rows = []
    for summary in boxes:
        box = catalog.clearance.box(summary.box)
        period = summary.periods[-1]
        machine = catalog.clearance.machine(period.machine)
        sees = [entry.visible for entry in summary.noise[:40]]
        rows.append(
            h.tr[
                h.th(scope="row")[h.a(href=f"{root}{addresses.machine(box)}")[box]],
                h.td[machine.cpu_model],
                numeric(str(machine.cores)),
                numeric(f"{machine.memory_bytes / 2**30:.0f} GiB"),
                h.td[machine.kernel],
                numeric(str(summary.nights)),
                numeric(str(len(summary.failed))),
                numeric(str(len(summary.missed))),
                h.td[f"{share(min(sees))} to {share(max(sees))}" if sees else "never calibrated"],
                h.td[day(period.last.started_at)],
            ]
        )
    heads = (
        "box",
        "processor",
        "cores",
        "memory",
        "kernel",
        "nights",
        "failed",
        "missed",
        "its steps see in three rounds",
        "latest session",
    )
    body = (
        table(heads, rows, caption="Boxes", sortable=True) if rows else note("No session was recorded yet.")
    )
    return Page(addresses.MACHINES, "Machines", body, catalog.data_until)


def _now(values: MachinePage, catalog: Catalog) -> h.Node:
    machine = catalog.clearance.machine(values.periods[-1].machine)
    governor = machine.details.get("governor")
    return facts(
        (
            ("processor", machine.processor),
            ("memory", f"{machine.memory_bytes / 2**30:.0f} GiB"),
            ("kernel", machine.kernel),
            ("system", machine.operating_system),
            ("governor", str(governor) if governor else None),
            ("fingerprint", h.code[machine.fingerprint]),
        )
    )


def _noise(values: MachinePage, catalog: Catalog) -> h.Node:
    """Return what changed about the noise, and the nights on which most series moved together."""
    named = [
        replace(box_note, environment=catalog.clearance.place(box_note.environment))
        for box_note in values.notes
    ]
    return section(
        "Noise from night to night",
        bullets(box_note_lines(named))
        or note("The noise of its series did not change, and on no night did most of them move together."),
        lead="What shows here is the machine's: it raises no change of a branch.",
    )


def _sees(values: MachinePage, root: str) -> h.Node:
    if not values.noise:
        return section(
            "What its steps can see",
            note(
                "This box was never calibrated: how small a change its steps can see is not known, and "
                "charts are hatched. ",
                h.code["./tidemark calibrate"],
                " measures it.",
            ),
        )
    latest: dict[tuple[str, str, str], object] = {}
    shown = []
    for calibrated in values.noise:
        if (calibrated.suite, calibrated.profile, calibrated.step) not in latest:
            latest[calibrated.suite, calibrated.profile, calibrated.step] = calibrated
            shown.append(calibrated)
    rows = [
        IntervalRow(
            f"{calibrated.step} ({calibrated.suite}, {calibrated.profile})",
            1.0,
            *calibrated.unseen,
            "open",
            f"{metric_name(calibrated.metric.name)}: sees {share(calibrated.visible)}",
            is_small=True,
        )
        for calibrated in shown
    ]
    numbers = (
        h.tr[
            h.td[h.a(href=f"{root}{addresses.session(calibrated.uid)}")[moment(calibrated.started_at)]],
            h.td[calibrated.suite],
            h.td[calibrated.profile],
            h.th(scope="row")[calibrated.step],
            h.td[named(calibrated.metric.name)],
            numeric(share(calibrated.sd, 2)),
            numeric(str(calibrated.rounds)),
            numeric(share(calibrated.visible)),
        ]
        for calibrated in values.noise
    )
    heads = (
        *("calibrated", "suite", "profile", "step", "metric", "scatter of a round", "rounds"),
        "three rounds see",
    )
    metrics = " and ".join(dict.fromkeys(metric_name(calibrated.metric.name) for calibrated in shown))
    return section(
        "What its steps can see",
        interval_figure(
            rows, f"Changes of {metrics} within the bar cannot be seen in three rounds", what="step"
        ),
        h.details[
            h.summary["Every calibration"],
            table(heads, numbers, caption="Noise of each step, by calibration", sortable=True),
        ],
    )


def _periods(values: MachinePage, catalog: Catalog, root: str) -> h.Node:
    return section(
        "Fingerprints over time",
        table(
            ("from", "to", "sessions", "fingerprint", "what changed"),
            (_period(period, catalog, root) for period in reversed(values.periods)),
            caption="Fingerprints, latest first",
        ),
        lead="Another fingerprint begins another machine: a shift between two is not blamed on a version.",
    )


def _period(period: MachinePeriod, catalog: Catalog, root: str) -> h.Node:
    machine = catalog.clearance.machine(period.machine)
    changed = [catalog.clearance.text(line) for line in period.changed]
    return h.tr[
        h.td[h.a(href=f"{root}{addresses.session(period.first.uid)}")[moment(period.first.started_at)]],
        h.td[h.a(href=f"{root}{addresses.session(period.last.uid)}")[moment(period.last.started_at)]],
        numeric(str(period.sessions)),
        h.td[h.code[machine.fingerprint]],
        h.td[bullets(dict.fromkeys(changed)) or "the first one"],
    ]


def _disturbed(values: MachinePage, catalog: Catalog, root: str) -> h.Node:
    if not values.disturbed:
        return section("Disturbed rounds", note("No round was disturbed and measured again."))
    rows = (
        h.tr[
            h.td[h.a(href=f"{root}{addresses.session(session.uid)}")[moment(session.started_at)]],
            h.td[", ".join(f"{step} {count}" for step, count in session.steps.items())],
            h.td[bullets(dict.fromkeys(catalog.clearance.text(reason) for reason in session.reasons))],
        ]
        for session in values.disturbed[:MAX_DISTURBED]
    )
    more = len(values.disturbed) - MAX_DISTURBED
    return section(
        "Disturbed rounds",
        table(
            ("session", "rounds by step", "why"), rows, caption="Sessions with disturbed rounds, latest first"
        ),
        note(f"and {counted(more, 'earlier session')}.") if more > 0 else None,
    )
