"""The costs of a change: beside its throughput, with box, suite and configuration in every row."""

import htpy as h

from history.store.records import Environment
from report import addresses
from report.markup.formats import change_of, span
from report.markup.metrics import named
from report.markup.parts import note, numeric, section, table
from report.pages.verdicts import COST_HEADS, cost_rows, meanings
from report.values.catalog import Catalog
from report.values.change_details import ChangeDetails
from suites.metrics import METRICS, Role

PLACE_HEADS = ("box", "suite", "configuration")


def cells_of(place: Environment) -> tuple[str, str, str]:
    """Return the cells below PLACE_HEADS."""
    return place.box, place.suite, place.configuration


def _meanings(root: str, linked: bool) -> h.Node:
    return meanings(f"{root}{addresses.HELP}") if linked else None


def costs_section(details: ChangeDetails, catalog: Catalog, root: str, linked: bool) -> h.Node:
    """Return what a query costs before and after a change, each cost with where it was measured."""
    main = details.report.main_series.key
    if details.confirmation is not None:
        step = next(
            (confirmed for confirmed in details.confirmation.steps if confirmed.step == main.step), None
        )
        if step is not None:
            heads = (COST_HEADS[0], *PLACE_HEADS, COST_HEADS[1], "before", "after", *COST_HEADS[4:])
            session = details.confirmation.session
            place = catalog.clearance.place(
                Environment(
                    session.machine.hostname, session.suite, f"{session.profile} {session.durability}"
                )
            )
            return section(
                "Costs per query, side by side",
                table(
                    heads,
                    cost_rows(step, Role.COST, where=cells_of(place)),
                    caption=f"Costs of {main.step} in the confirming session",
                ),
                _meanings(root, linked),
            )
    costs = [
        member for member in details.costs.get(main.step, ()) if METRICS[member.key.metric].role is Role.COST
    ]
    if not costs:
        return section("Costs per query", note(f"No cost of {main.step} changed with it."))
    rows = (
        h.tr[
            h.th(scope="row")[named(cost.key.metric)],
            [h.td[text] for text in cells_of(catalog.clearance.place(cost.key.environment))],
            numeric(change_of(cost.ratio)),
            numeric(span(cost.ratio_low, cost.ratio_high)),
        ]
        for cost in costs
    )
    return section(
        "Costs per query",
        table(
            ("cost", *PLACE_HEADS, "change", "interval"),
            rows,
            caption=f"Costs of {main.step} that changed with it",
        ),
    )
