"""The series explorer: its controls; script draws the chart and fills the table from the site's data."""

from datetime import datetime

import htpy as h

from report import addresses
from report.markup.frame import Page
from report.markup.parts import note

EXPLORER = ("series_values", "series_keys", "series_labels", "series_chart", "series_table", "series")
"""The scripts of the explorer, in the order in which they need each other."""


def series_page(count: int, until: datetime | None) -> Page:
    """Return the explorer; `count` is the number of series."""
    if not count:
        body: h.Node = note("There is no series yet: a series begins with the first night.")
        return Page(addresses.SERIES, "Series", body, until)
    body = [
        h.noscript[
            note("The chart is drawn by the site's own script. Pages of branches and changes need none.")
        ],
        _controls(),
        h.p("#state", role="status")["Loading the list of series."],
        h.p("#left-out.note", hidden=True),
        h.div("#changes"),
        # In the order of Tab: the chart, then the same as a table.
        _chart(),
        h.p("#chart-key.key"),
        h.details("#numbers", open=True)[
            h.summary["The same as a table"],
            h.div("#rows.scroll", tabindex="0", role="group", aria_label="Night by night"),
        ],
        h.p(".quiet")[
            "For all values, exports hold them: ",
            h.code["./tidemark history export"],
            " writes NDJSON.",
        ],
        h.div("#picked", role="status", aria_label="Picked nights"),
    ]
    return Page(
        addresses.SERIES,
        "Series",
        body,
        until,
        scripts=(
            "static/uplot/uPlot.iife.min.js",
            *(f"static/{script}.js" for script in EXPLORER),
            "data/series.js",
        ),
        styles=("static/uplot/uPlot.min.css",),
    )


def _controls() -> h.Node:
    return h.form("#controls")[
        (
            _select(name, label)
            for name, label in (
                ("place", "box, suite, configuration"),
                ("branch", "branch"),
                ("step", "step"),
                ("metric", "metric"),
            )
        ),
        h.label[
            h.span["axis"],
            h.select("#axis")[
                h.option(value="rel")["relative to the base"],
                h.option(value="abs")["absolute, from zero"],
            ],
        ],
        h.label[
            h.span["boxes"],
            h.select("#boxes")[h.option(value="one")["this one"], h.option(value="all")["all boxes"]],
        ],
        h.label[h.span["from"], h.input("#from", type="date")],
        h.label[h.span["to"], h.input("#to", type="date")],
    ]


def _chart() -> h.Node:
    """Return the place of the chart: one stop for the keyboard, which reads it with the arrows."""
    return h.div(
        "#chart.explorer",
        tabindex="0",
        role="slider",
        aria_label="Chart of the series",
        aria_orientation="horizontal",
        aria_valuemin="0",
        aria_valuemax="0",
        aria_valuenow="0",
        aria_describedby="chart-key",
    )


def _select(name: str, label: str) -> h.Node:
    return h.label[h.span[label], h.select(id=name)]


def two_page(count: int, until: datetime | None) -> Page:
    """Return the page that compares any two versions or nights; `count` is the number of series."""
    crumbs = (("Versions", addresses.LADDERS),)
    if not count:
        body: h.Node = note("There is nothing to compare yet: values begin with the first night.")
        return Page(addresses.TWO, "Any two compared", body, until, crumbs=crumbs)
    body = [
        h.p(".lead")["Two versions or nights of one suite on one box, whether or not a session has both."],
        h.noscript[note("Two nights are compared by the site's own script; ladders need none.")],
        h.form("#controls")[
            _select("place", "box, suite, configuration"),
            _select("metric", "metric"),
            _select("first", "first"),
            _select("second", "second"),
            h.button("#swap", type="button")["Swap first and second"],
        ],
        h.p("#state", role="status")["Loading the nights."],
        h.div("#said", aria_live="polite"),
        h.div[h.div("#steps.scroll", tabindex="0", role="group", aria_label="Step by step")],
    ]
    scripts = ("static/series_values.js", "static/two.js", "data/series.js")
    return Page(addresses.TWO, "Any two compared", body, until, crumbs=crumbs, scripts=scripts)


def profiles_page(count: int, until: datetime | None) -> Page:
    """Return the page that subtracts the profiles of any two nights; `count` is the number of profiles."""
    if not count:
        body: h.Node = note(
            "No CPU profile was recorded yet: ", h.code["./tidemark run --perf"], " records them."
        )
        return Page(addresses.PROFILES, "Profiles of two nights", body, until)
    body = [
        h.noscript[
            note("Profiles are subtracted by the site's own script; the pages of steps show them without.")
        ],
        h.form("#controls")[
            h.label[h.span["step"], h.select("#step")],
            h.label[h.span["before"], h.select("#before")],
            h.label[h.span["after"], h.select("#after")],
            h.label[h.span["role"], h.select("#role")],
        ],
        h.p("#state", role="status")["Loading the list of profiles."],
        h.div("#totals", aria_live="polite"),
        h.h2["Where the time went"],
        h.p(".key")[
            "Width: µs of CPU per query after. Orange: more than before; blue: less. A frame opens its part."
        ],
        h.div("#flames.plot", tabindex="0", role="group", aria_label="Stacks"),
        h.h2["Functions"],
        h.div("#functions.scroll", tabindex="0", role="group", aria_label="Functions"),
    ]
    return Page(
        addresses.PROFILES,
        "Profiles of two nights",
        body,
        until,
        scripts=("static/profiles.js", "data/profiles.js"),
    )
