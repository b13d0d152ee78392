"""Folders for servers with a declared memory or disk."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from runners.fitness.kernel import Kernel
from runners.fitness.storage import home_mount
from runners.measuring.cleanup import clean
from suites.control_groups.declared import LimitError
from suites.control_groups.group import GroupLimit, make_group
from suites.control_groups.storage import UNCACHED_NOWHERE


@contextmanager
def folder_on_disk(limits: Sequence[GroupLimit]) -> Iterator[Path]:
    """A folder on a disk; the test is skipped where there is none, or no group with such limits."""
    folder = Path(tempfile.mkdtemp(prefix="tmt-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        mount = home_mount(Kernel(), folder)
        if mount is None or mount.kind in UNCACHED_NOWHERE:
            pytest.skip("/tmp is not on a disk")
        try:
            make_group(f"tidemark-test-{os.getpid()}", limits).remove()
        except LimitError as error:
            pytest.skip(str(error))
        yield folder
    finally:
        clean(folder)
