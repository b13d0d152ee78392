"""Containers of a test: a program in namespaces of its own, which shares the files of this machine."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from build.home import ROOT

_SPACES = ("--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--ipc", "--uts")

_ENTER = 'hostname "$0" && mount -t tmpfs none /run/lock && exec "$@"'


def _may_be_made() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", *_SPACES, "sh", "-c", _ENTER, "x", "true"], check=False).returncode == 0


needs_containers = pytest.mark.skipif(
    not _may_be_made(), reason="containers of a test need root, unshare and /run/lock"
)


def contained(host: str, code: str, *arguments: object) -> "subprocess.Popen[str]":
    """Start Python code in a container of that name, with a lock of the machine of its own."""
    command = ["unshare", *_SPACES, "sh", "-c", _ENTER, host, sys.executable, "-c", code]
    variables = {name: value for name, value in os.environ.items() if name != "TIDEMARK_LOCK"}
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said_in(host: str, code: str, *arguments: object) -> str:
    """What the code prints in a container of that name."""
    with contained(host, code, *arguments) as process:
        said, _ = process.communicate(timeout=60)
    return said.strip()


@contextmanager
def living(host: str, code: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    """A container whose code has printed `ready`, and reads its input; killed at the end of the block."""
    with contained(host, code, *arguments) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()
