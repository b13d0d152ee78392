"""`./tidemark report`: write the report site, or one page to mail."""

import argparse
import sys
from pathlib import Path

from build.home import locate, locate_for_writing
from history.open import existing_history
from history.spool.opening import open_delivered
from report.writing.site import SiteOptions, write_site
from runners.console import progress
from runners.nightly.site_options import of_last_plan
from runners.occupancy.waiting import quiet_machine
from runners.reporting.bisects import read_bisects
from runners.reporting.commits import commits_in


def main(arguments: argparse.Namespace) -> int:
    """Write the site and say where it is, or print one page; return 0.

    A site loads the machine for minutes, and waits for a measurement to end. Raises BusyError.
    """
    if arguments.page is not None:
        from runners.reporting.pages import page_alone  # loaded only for one page

        kind, name = arguments.page
        with open_delivered(existing_history(arguments.history), locate(), most_bytes=None) as store:
            commits = commits_in(locate())
            sys.stdout.write(page_alone(store, kind, name, is_public=arguments.public, commits_of=commits))
        return 0
    home = locate() if arguments.out else locate_for_writing()
    folder = Path(arguments.out) if arguments.out else home.site
    history = existing_history(arguments.history)
    with (
        progress() as shown,
        quiet_machine(home, shown),
        open_delivered(history, locate(), most_bytes=None) as store,
    ):
        options = SiteOptions(folder, arguments.public, bisects=read_bisects(store), commits=commits_in(home))
        if arguments.history is None:
            options = of_last_plan(options, home)
        summary = write_site(store, options, shown)
    print(f"{summary.folder / 'index.html'}: {summary.pages} pages, {summary.changed} files written")
    return 0
