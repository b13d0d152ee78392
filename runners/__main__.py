"""`python -m runners`: what the launcher calls."""

import gc
import os
import sys
import traceback

from runners.interrupts import interrupt_once

in_a_moment = sys.argv[1:2] == ["compare"]
if in_a_moment:
    gc.disable()  # it ends in a moment, and most of that is imports, which leave no garbage
interrupt_once()  # before the imports that take time

from runners.cli import TROUBLE, main  # noqa: E402

try:
    status = main()
except Exception:
    # A bug ends with its traceback, and as trouble: Python's own status would say that something regressed.
    traceback.print_exc()
    status, in_a_moment = TROUBLE, False
if in_a_moment:
    os._exit(status)  # main has flushed; to take every module apart is a tenth of a comparison
sys.exit(status)
