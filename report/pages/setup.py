"""The settings and builds of a session's versions, what differs between them first."""

from collections.abc import Mapping, Sequence

import htpy as h

from history.counts import counted
from history.numbers import DASH
from history.store.records import LEFT_OUT
from report import addresses
from report.markup.frame import Page
from report.markup.parts import cell, note, row, section, table
from report.values.clearance import Clearance
from report.values.session_page import SessionPage, VersionSetup


def setup_page(values: SessionPage, clearance: Clearance) -> Page:
    """Return the page with settings and manifests; the session must have a setup."""
    uid = values.entry.uid
    setups = values.setups
    settings = [clearance.settings(setup.settings) for setup in setups]
    manifests = [clearance.manifest(setup.manifest) for setup in setups]
    body = [
        section("Settings of the servers", differences(setups, settings, "setting")),
        section("Builds", differences(setups, manifests, "entry of the manifest")),
        _left_out(values, clearance),
    ]
    return Page(
        addresses.setup(uid),
        f"Settings and builds of session {uid}",
        body,
        values.entry.ended_at or values.entry.started_at,
        crumbs=(("Sessions", addresses.SESSIONS), (f"Session {uid}", addresses.session(uid))),
    )


def _left_out(values: SessionPage, clearance: Clearance) -> h.Node:
    """Return which variables of the caller were left out; None if unknown, or on a public site."""
    names = values.session.options.get(LEFT_OUT)
    if not isinstance(names, list) or clearance.is_public:
        return None
    return section(
        "Environment variables",
        note(f"Servers and load generators did not get: {', '.join(names) or 'none was left out'}."),
    )


def differences(setups: Sequence[VersionSetup], values: Sequence[Mapping[str, str]], what: str) -> h.Node:
    """Return what differs between versions as a table, and what is equal in all as one to open."""
    names = sorted({name for value in values for name in value})
    if not names:
        return note("Nothing was recorded.")
    differing = [name for name in names if len({value.get(name) for value in values}) > 1]
    equal = [name for name in names if name not in set(differing)]
    several = what.replace("entry", "entries") if "entry" in what else ""
    heads = (what, *(setup.version for setup in setups))
    rows = [
        row(h.code[name], *(cell(value.get(name, DASH), "value") for value in values)) for name in differing
    ]
    return [
        table(
            heads,
            rows,
            caption=f"What differs: {counted(len(differing), what, several)}",
        )
        if differing
        else note("All versions are equal here." if len(setups) > 1 else "There is one version."),
        h.details(open=len(setups) == 1)[
            h.summary[f"Equal in all versions: {len(equal)}"],
            table(
                (what, "value"),
                (row(h.code[name], cell(values[0].get(name, DASH), "value")) for name in equal),
                caption="Equal in all versions",
            ),
        ]
        if equal
        else None,
    ]
