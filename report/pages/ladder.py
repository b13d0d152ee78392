"""The version ladder: steps by versions, coloured, with groups and geometric means."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import htpy as h

from history.counts import counted
from history.numbers import two_decimals
from report import addresses
from report.markup.formats import amount, day, mean_name, metric_name, short_version
from report.markup.frame import Page
from report.markup.metrics import described, metric_parts, named
from report.markup.parts import (
    Heat,
    facts,
    has_moved,
    heat_cell,
    heat_of,
    legend,
    note,
    numeric,
    table,
)
from report.values.clearance import Clearance
from report.values.ladder import Ladder, LadderColumn
from suites.metrics import Better

MAX_PLAIN = 12
"""A ladder of more versions is dense: its heads stand upright, and its columns are as narrow as a ratio."""


def ladder_page(ladders: Sequence[Ladder], clearance: Clearance) -> Page:
    """Return the page of an environment's versions; `ladders` has one for each metric, and is not empty."""
    place = clearance.place(ladders[0].place)
    path = addresses.ladder(place.suite, place.box, place.configuration, ladders[0].base_branch)
    root = addresses.way_to_root(path)
    naming = Naming.of(ladders)
    body: list[h.Node] = [
        facts(
            (
                ("suite", place.suite),
                ("configuration", place.configuration),
                ("box", h.a(href=f"{root}{addresses.machine(place.box)}")[place.box]),
                ("base", ladders[0].base),
            )
        ),
        metric_parts((ladder.metric, _ladder(ladder, root, naming)) for ladder in ladders),
        legend(),
    ]
    return Page(
        path,
        f"{place.suite} on {place.box}: versions",
        body,
        max(column.started_at for ladder in ladders for column in ladder.columns),
        heading=[place.suite, h.span(".quiet")[f" on {place.box}, {place.configuration}"]],
        crumbs=(("Versions", addresses.LADDERS),),
        scripts=("static/ladder.js",),
    )


@dataclass(frozen=True)
class Naming:
    """What the heads of a page say besides the version."""

    has_engines: bool
    """Whether the page has several engines."""

    has_branches: bool

    @classmethod
    def of(cls, ladders: Sequence[Ladder]) -> "Naming":
        """Return what tells the versions of a page apart."""
        branches = {column.branch for ladder in ladders for column in ladder.columns}
        branches |= {ladder.base_branch for ladder in ladders}
        return cls(len({branch.partition("@")[0] for branch in branches}) > 1, len(branches) > 1)

    def lines(self, version: str, branch: str) -> tuple[str, str]:
        """Return the head of a version, and its branch where the head does not begin with its name."""
        engine, _, line = branch.partition("@")
        short = short_version(version)
        named = f"{engine} {short}" if self.has_engines else short
        is_said = not self.has_branches or f"{short}.".startswith(f"{line}.")
        return named, "" if is_said else line


def _ladder(ladder: Ladder, root: str, naming: Naming) -> h.Node:
    versions = f"{counted(len(ladder.columns), 'version')}, each in its latest session with the base"
    left_out = f"{counted(ladder.left_out, 'older version')} have no column; series.html has their nights."
    return [
        h.p(".base-note", aria_live="polite")[
            f"Ratios of {described(ladder.metric)}, to ",
            h.b[ladder.base],
            f", measured in the same session: {versions}. The head of a column makes it the base.",
            _unjudged(ladder),
        ],
        _table(ladder, root, naming),
        note(left_out) if ladder.left_out else None,
    ]


def ladder_index(ladders: Sequence[Ladder], clearance: Clearance) -> Page:
    """Return the list of ladders, which has those of metrics that sessions are judged by."""
    root = addresses.way_to_root(addresses.LADDERS)
    rows = []
    for ladder in (candidate for candidate in ladders if candidate.is_own):
        place = clearance.place(ladder.place)
        page = addresses.ladder(place.suite, place.box, place.configuration, ladder.base_branch)
        href = f"{root}{page}#metric={ladder.metric.name}"
        newest = max(ladder.columns, key=lambda column: column.started_at)
        mean = ladder.mean(newest, list(ladder.groups))
        rows.append(
            h.tr[
                h.th(scope="row")[h.a(href=href)[place.suite]],
                h.td[place.box],
                h.td[place.configuration],
                h.td[named(ladder.metric.name)],
                h.td[ladder.base],
                numeric(str(len(ladder.columns))),
                numeric(str(len(ladder.groups))),
                h.td[f"{newest.version}, {day(newest.started_at)}"],
                numeric(two_decimals(mean)),
            ]
        )
    heads = (
        *("suite", "box", "configuration", "metric", "base", "versions", "steps", "latest"),
        "its geometric mean",
    )
    body: h.Node = (
        table(heads, rows, caption="Versions by suite and box", sortable=True)
        if rows
        else note("No session has both a base and another version yet.")
    )
    until = max((column.started_at for drawn in ladders for column in drawn.columns), default=None)
    return Page(addresses.LADDERS, "Versions", body, until)


def _unjudged(ladder: Ladder) -> str:
    """Say how many ratios have no verdict, so that their colour is not taken for one."""
    cells = [cell for column in ladder.columns for cell in column.cells.values() if cell.value is not None]
    unjudged = sum(cell.verdict is None for cell in cells)
    if not unjudged:
        return ""
    return f" {unjudged} of {len(cells)} ratios have no verdict: they have no sign, and colour by size alone."


def _table(ladder: Ladder, root: str, naming: Naming) -> h.Node:
    heads: list[h.Node] = ["step", _head(ladder.base, ladder.base_branch, "base", naming, is_base=True)]
    heads += [
        _head(column.version, column.branch, day(column.started_at), naming) for column in ladder.columns
    ]
    rows: list[h.Node] = []
    for group, steps in _groups(ladder):
        if group:
            rows.append(
                h.tr(".group")[h.th(scope="rowgroup", colspan=str(len(ladder.columns) + 2))[h.span[group]]]
            )
        rows += [_row(ladder, step, root) for step in steps]
    foot = [
        *(
            _mean(ladder, mean_name(len(steps), group), steps)
            for group, steps in _groups(ladder)
            if group and len(steps) > 1
        ),
        _mean(ladder, mean_name(len(ladder.groups)), list(ladder.groups)),
    ]
    return table(
        heads,
        rows,
        caption=f"{metric_name(ladder.metric.name)} relative to the base, by step and version",
        foot=foot,
        class_=" ".join(
            (
                "moved ladder",
                "less" if ladder.metric.better is Better.LOWER else "more",
                *(("dense",) if len(ladder.columns) > MAX_PLAIN else ()),
            )
        ),
    )


def _head(version: str, branch: str, below: str, naming: Naming, *, is_base: bool = False) -> h.Node:
    named, line = naming.lines(version, branch)
    return h.button(
        type="button",
        data_version=version,
        aria_pressed="true" if is_base else "false",
        title=f"make {version}, branch {branch}, the base",
    )[h.span[named], h.small(".branch")[line] if line else None, h.small[below]]


def _groups(ladder: Ladder) -> Iterator[tuple[str, list[str]]]:
    for group in dict.fromkeys(ladder.groups.values()):
        yield group, [step for step, step_group in ladder.groups.items() if step_group == group]


def _row(ladder: Ladder, step: str, root: str) -> h.Node:
    base = next((compared.cells[step].base for compared in ladder.columns if step in compared.cells), None)
    judged = [column.cells[step] for column in ladder.columns if step in column.cells]
    return h.tr(data_step=step, data_moved="yes" if any(map(has_moved, judged)) else "no")[
        h.th(scope="row")[step],
        h.td(class_="heat same base-cell", data_v="1" if base else None)[
            h.span(title=f"{amount(base)} {ladder.metric.unit}" if base else None)["1.00"]
        ],
        (_cell(ladder, column, step, root) for column in ladder.columns),
    ]


def _cell(ladder: Ladder, column: LadderColumn, step: str, root: str) -> h.Node:
    judged = column.cells.get(step)
    if judged is None:
        return heat_cell(Heat(None, None, ladder.metric.better, reason="not measured"))
    href = f"{root}{addresses.step(column.uid, step)}#metric={judged.metric}" if column.has_rounds else None
    values = f"{amount(judged.base)} to {amount(judged.contender)} {judged.unit}" if judged.value else ""
    return heat_cell(heat_of(judged), href, values)


def _mean(ladder: Ladder, name: str, steps: Sequence[str]) -> h.Node:
    cells = []
    for column in ladder.columns:
        mean = ladder.mean(column, steps)
        cells.append(
            h.td(
                class_=f"heat {'same' if mean is not None else 'none'}",
                data_v=f"{mean:.6g}" if mean is not None else None,
            )[h.span[two_decimals(mean)]]
        )
    return h.tr[
        h.th(scope="row")[name], h.td(class_="heat same base-cell", data_v="1")[h.span["1.00"]], cells
    ]
