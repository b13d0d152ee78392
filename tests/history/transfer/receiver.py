"""Takes an export or a history in, until it is done, or kills itself at one of the statements of the merge.

python -m tests.history.transfer.receiver HISTORY SOURCE [STATEMENT]
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

from sqlalchemy import Engine, event

from history.open import open_store
from history.transfer.format_detection import open_histories
from history.transfer.merging import merge


def receive(path: Path, source: str, dies_at: str) -> None:
    with open_histories([source]) as incoming, open_store(path) as store:
        numbers = count(1)
        at = 0

        def counted(*_: object) -> None:
            nonlocal at
            at = next(numbers)
            if str(at) == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

        if dies_at:
            event.listen(Engine, "before_cursor_execute", counted)
        merged = merge(store, incoming.sources)
    print(sum(count.added for count in merged.counts.values()), at, flush=True)


if __name__ == "__main__":
    receive(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
