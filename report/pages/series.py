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
