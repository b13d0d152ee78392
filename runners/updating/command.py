"""`./tidemark update`: this box at another commit of Tidemark, which is tried before it is used."""

import argparse
import os
import shutil
import sys
from pathlib import Path

from build.home import ROOT, Home, locate
from history.open import is_server
from runners.console import progress
from runners.installing.machine import TargetMachine
from runners.installing.units import Installed, installed_units, plan_in_use
from runners.nightly.plan import load_plan, plan_history
from runners.occupancy.waiting import machine_awaited
from runners.updating.calls import Calls
from runners.updating.checkout import Checkout
from runners.updating.switching import BACKUP, Switch
from runners.updating.trial import Trial, has_history


def main(arguments: argparse.Namespace) -> int:
    """Update this box; return 0. Raises UpdateError when it stays as it was, GitError, and BusyError."""
    checkout = Checkout(ROOT)
    checkout.require_unchanged()
    machine = TargetMachine()
    installed = installed_units(machine)
    install = installed.words if machine.has_systemd else ()
    home = _home(installed)
    plan = plan_in_use(arguments.plan, machine).absolute()
    history = plan_history(load_plan(plan), home)
    with progress() as shown:
        remote = checkout.fetch(shown)
        news = checkout.news(arguments.to, remote)
        print("\n".join(news.lines()), flush=True)
        if news.old == news.new or arguments.dry_run:
            return 0
        checkout.require_replaceable(news, remote)
        with machine_awaited(home, 60 * arguments.wait, shown):
            checkout.require_unchanged()  # it may have waited for long
            calls, new = Calls(home, checkout.folder / "logs", installed.variables), checkout.folder / "new"
            for left in (calls.logs, new):
                shutil.rmtree(left, ignore_errors=True)
            checkout.extract(news.new, new)
            trial = Trial(calls, ROOT, new, history, plan, shown)
            try:
                trial.carry_out(Path(sys.prefix))
                Switch(calls, checkout, news, history, install, shown).carry_out()
            except BaseException as error:
                error.add_note(f"{news.old[:12]} is in use, as before")
                raise
            finally:
                shutil.rmtree(new, ignore_errors=True)
                trial.clear()
    print(f"updated to {news.new[:12]}")
    if has_history(history):
        print(f"the history as it was before: {home.backups / BACKUP}")
    if is_server(history):
        print("boxes with an older commit keep what they measure until they are updated")
    if not install:
        print("no installed units run this checkout; what starts nights here needs no restart")
    return 0


def _home(installed: Installed) -> Home:
    """Return the home of the box: `$TIDEMARK_HOME`, that of the installed units, or the usual one."""
    chosen = installed.variables.get("TIDEMARK_HOME")
    return Home(Path(chosen)) if chosen and not os.environ.get("TIDEMARK_HOME") else locate()
