"""`python -m runners`: the program that the launcher starts."""

import contextlib
import gc
import os
import sys
import traceback

from runners.exit_codes import INTERRUPTED, TROUBLE
from runners.interrupts import interrupt_once

is_short = sys.argv[1:2] == ["compare"]
if is_short:
    gc.disable()  # most of its short run is imports, which leave no garbage
interrupt_once()  # before the imports that take time
# NumPy's OpenBLAS starts a thread for each core, for which we have no use. Where it cannot, because memory or
# processes are limited, it sends this process a SIGINT, as if a person had interrupted it (blas_server.c).
os.environ["OPENBLAS_NUM_THREADS"] = "1"

try:
    from runners.standard_streams import OutputError, prepare

    try:
        prepare()
    except OutputError as error:
        print(f"tidemark: {error}", file=sys.stderr)
        sys.exit(TROUBLE)
    if not is_short:  # a comparison starts nothing
        from runners.credentials import begin_without, hide_process

        hide_process()
        begin_without(sys.argv[1:])
    from runners.cli import main

    status = main()
except KeyboardInterrupt:
    # While modules were being imported; main answers for all that comes after.
    status = INTERRUPTED
except Exception:
    # A bug ends with its traceback and exit code 2: Python's own code 1 would mean a regression.
    traceback.print_exc()
    status, is_short = TROUBLE, False
if is_short:
    os._exit(status)  # main has flushed; tearing down all modules takes a tenth of a comparison
if status == INTERRUPTED:
    # Where the interruption passed through exec() of a text, as in the making of a dataclass, Python would
    # end itself by SIGINT now, although it was answered (run_eval_code_obj of Python/pythonrun.c).
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
sys.exit(status)
