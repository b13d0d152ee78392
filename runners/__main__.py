"""`python -m runners`: what the launcher calls."""

import sys

from runners.interrupts import interrupt_once

interrupt_once()  # before the imports that take time

from runners.cli import main  # noqa: E402

sys.exit(main())
