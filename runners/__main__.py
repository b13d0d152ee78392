"""`python -m runners`: what the launcher calls."""

import gc
import sys

from runners.interrupts import interrupt_once

if sys.argv[1:2] == ["compare"]:
    gc.disable()  # it ends in a moment, and most of that is imports, which leave no garbage
interrupt_once()  # before the imports that take time

from runners.cli import main  # noqa: E402

sys.exit(main())
