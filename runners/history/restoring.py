"""`./tidemark history restore`: the history brought back to a backup of it."""

import argparse
from pathlib import Path

from build.home import locate, locate_for_writing
from history.backups.restore import restore
from runners.measuring.machine_lock import measuring_alone
from runners.values import history_of


def restore_(arguments: argparse.Namespace) -> int:
    """Replace a history by a backup; return 0.

    Raises BusyError while something measures on this machine: it records into the history between rounds.
    """
    home = locate() if arguments.history else locate_for_writing()
    with measuring_alone(home):
        restored = restore(
            Path(arguments.file), history_of(arguments.history, home), discard=arguments.discard
        )
    if restored.kept is not None:
        print(f"the earlier history is kept: {restored.kept}")
    for what, count in restored.newer.items():
        print(f"only there: {count} {what}")
    print(f"restored, {restored.sessions} sessions: {restored.path}")
    return 0
