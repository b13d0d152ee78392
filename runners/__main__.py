"""`python -m runners`: what the launcher calls."""

import gc
import os
import sys

from runners.interrupts import interrupt_once

in_a_moment = sys.argv[1:2] == ["compare"]
if in_a_moment:
    gc.disable()  # it ends in a moment, and most of that is imports, which leave no garbage
interrupt_once()  # before the imports that take time

from runners.cli import main  # noqa: E402

code = main()
if in_a_moment:
    os._exit(code)  # main has flushed; to take every module apart is a tenth of a comparison
sys.exit(code)
