"""`python -m runners`: what the launcher calls."""

import gc
import sys
import traceback

from runners.interrupts import interrupt_once

if sys.argv[1:2] == ["compare"]:
    gc.disable()  # it ends in a moment, and most of that is imports, which leave no garbage
interrupt_once()  # before the imports that take time

from runners.cli import TROUBLE, main  # noqa: E402

try:
    status = main()
except Exception:
    # A bug ends with its traceback, and as trouble: Python's own status would say that something regressed.
    traceback.print_exc()
    status = TROUBLE
sys.exit(status)
