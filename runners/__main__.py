"""`python -m runners`: what the launcher calls."""

import sys

from runners.cli import main

sys.exit(main())
