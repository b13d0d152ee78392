"""`python -m runners`: the program that the launcher starts."""

import gc
import os
import sys
import traceback

from history.escaping.characters import visible
from runners.exit_codes import INTERRUPTED, TROUBLE
from runners.interrupts import interrupt_once

is_short = sys.argv[1:2] == ["compare"]
if is_short:
    gc.disable()  # most of its short run is imports, which leave no garbage
interrupt_once()  # before the imports that take time

try:
    from runners.cli import main

    status = main()
except KeyboardInterrupt:
    # While modules were being imported; main answers for all that comes after.
    print("tidemark: interrupted; nothing had begun", file=sys.stderr)
    sys.exit(INTERRUPTED)
except Exception:
    # A bug ends with its traceback and exit code 2: Python's own code 1 would mean a regression.
    print(visible(traceback.format_exc()), file=sys.stderr, end="")
    status, is_short = TROUBLE, False
if is_short:
    os._exit(status)  # main has flushed; tearing down all modules takes a tenth of a comparison
sys.exit(status)
