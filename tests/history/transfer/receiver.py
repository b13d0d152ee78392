"""Takes exports or histories in, again and again if asked, until it is done or killed.

python -m tests.history.transfer.receiver HISTORY SOURCE...
"""

import sys
from pathlib import Path

from history.open import open_store
from history.transfer.format_detection import open_histories
from history.transfer.merging import merge


def receive(path: Path, sources: list[str]) -> None:
    with open_histories(sources) as incoming, open_store(path) as store:
        print("open", flush=True)
        merged = merge(store, incoming.sources)
    print(sum(count.added for count in merged.counts.values()), flush=True)


if __name__ == "__main__":
    receive(Path(sys.argv[1]), sys.argv[2:])
