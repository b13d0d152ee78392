"""The arguments of `./tidemark report`."""

import argparse

KINDS = ("change", "session", "bisect")
"""The kinds of pages that can be had alone. A comparison alone is `compare --format html`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to the parser of `report`."""
    parser.description = (
        "Write the report site: static pages that a browser reads from disk or from any web server. A site "
        "that is there already is renewed: only what changed is written, and it is replaced in one step."
    )
    parser.epilog = (
        "docs/report.md describes every page; exit codes: 0 written; 2 trouble, and the old site is whole"
    )
    parser.add_argument(
        "--out", metavar="FOLDER", help="folder of the site (default: site in Tidemark's output folder)"
    )
    public = (
        "for publishing: leave out host names, paths, command lines, and texts that may hold them; "
        "the page lists what is allowed"
    )
    parser.add_argument("--public", action="store_true", help=public)
    page = (
        f"print one self-contained page to mail instead; KIND: {', '.join(KINDS)}; NAME: fingerprint or uid"
    )
    parser.add_argument("--page", nargs=2, metavar=("KIND", "NAME"), help=page)
    parser.add_argument(
        "--history", metavar="PATH", help="path or URL of the history, instead of Tidemark's own"
    )
