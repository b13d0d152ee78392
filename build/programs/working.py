"""Whether a program that is there also works: one that only says so when it is asked for work is missing."""

import subprocess
from collections.abc import Mapping

from build.programs.work import end_group

SECONDS = 30.0
"""Time limit of a program that is asked for its version."""


def why_not(program: str, option: str = "--version", env: Mapping[str, str] | None = None) -> str | None:
    """Return why a program cannot even tell its version, in one line; None if it can.

    Shims, such as rustup's cargo without a toolchain or nvm's node, stand on the path and work no more. `env`
    are its variables; None for those of this process.
    """
    try:
        process = subprocess.Popen(
            [program, option],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd="/",  # a folder may choose a toolchain
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        return error.strerror or str(error)
    try:
        said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"it did not answer within {SECONDS:g} s"
    finally:
        end_group(process)
    if process.returncode == 0:
        return None
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[0][:200] if lines else f"exit status {process.returncode}"
