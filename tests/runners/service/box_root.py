"""A root of its own for commands that set up a box: the files of this machine, and changes that go with it.

An overlay over the root of this machine, whose upper folder is in memory, in a mount namespace of each
command. Users, files, folders and processes are those of the box; kernel and network are this machine's, and
there is no systemd: unit_starter.py stands in for it.
"""

import os
import pty
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from build.home import ROOT
from tests.runners.service.clones import git, make_upstream

MEMORY = Path("/dev/shm")
"""The upper folder of an overlay may not lie in the lower one, which is the root."""

TIDEMARK = "/srv/tidemark"
"""Where the repository of Tidemark is in the box."""

ENTER = """set -e
mount -t overlay overlay -o "lowerdir=/,upperdir=$BOX/upper,workdir=$BOX/work" "$BOX/root"
mount -t proc proc "$BOX/root/proc"
for folder in dev sys; do mount --rbind "/$folder" "$BOX/root/$folder"; done
mount -t tmpfs tmpfs "$BOX/root/tmp"
case "$CHECKOUT" in
/tmp/*) mkdir -p "$BOX/root$CHECKOUT"; mount --bind "$CHECKOUT" "$BOX/root$CHECKOUT" ;;
esac
# Its servers see no others, and would take the segments of those for leftovers.
mount -t tmpfs tmpfs "$BOX/root/dev/shm"
chmod 1777 "$BOX/root/tmp"
exec chroot "$BOX/root" "$@"
"""

FRESH = """set -e
rm -rf /var/lib/tidemark /opt/tidemark /etc/tidemark /etc/credstore /run/lock/tidemark.lock
sed -i /^tidemark:/d /etc/passwd /etc/shadow /etc/group /etc/gshadow
mkdir -p /run/systemd/system /run/lock /usr/local/bin
chmod 1777 /run/lock
# The Python of this checkout may be root's own.
chmod o+x /root
"""


@dataclass
class BoxRoot:
    """A root in which commands run as root."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Where a file that was written in the box lies between commands."""
        return self.folder / "upper" / name.lstrip("/")

    def run(self, *words: str, typed: str = "", terminal: bool = False) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end; `typed` is its input, on a terminal or not."""
        names = ("PATH", "LANG", "HOME", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "SSL_CERT_FILE", "http_proxy")
        environment = {name: os.environ[name] for name in (*names, "https_proxy") if name in os.environ}
        environment |= {**self.variables, "BOX": str(self.folder), "CHECKOUT": str(ROOT)}
        spaces = ("--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--ipc")
        enter = ["unshare", *spaces, "sh", "-c", ENTER, "enter"]
        reader, writer = pty.openpty() if terminal else os.pipe()
        source = writer if terminal else reader
        try:
            os.write(reader if terminal else writer, typed.encode())
            if not terminal:
                os.close(writer)
            return subprocess.run(
                [*enter, *words],
                env=environment,
                stdin=source,
                capture_output=True,
                text=True,
                check=False,
                timeout=900,
            )
        finally:
            os.close(reader)
            if terminal:
                os.close(writer)

    def shell(self, text: str) -> str:
        """Run a text of the shell that must succeed; return what it says."""
        done = self.run("sh", "-c", text)
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def box_root() -> Iterator[BoxRoot]:
    """Make a box on which nothing of Tidemark is yet; skips the test where this user may not mount."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or not MEMORY.is_dir():
        pytest.skip("a root of its own needs root, unshare and /dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="tidemark-box-", dir=MEMORY))
    try:
        folder.chmod(0o755)
        for name in ("upper", "work", "root"):
            (folder / name).mkdir()
        box = BoxRoot(folder)
        done = box.run("sh", "-c", FRESH)
        if "mount" in done.stderr:
            pytest.skip(f"an overlay cannot be mounted here: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        upstream = box.path(TIDEMARK)
        make_upstream(upstream)
        git(upstream, "add", "--all")
        git(upstream, "commit", "--quiet", "--message", "Tidemark")
        programs = box.path("/usr/local/bin")
        programs.mkdir(parents=True, exist_ok=True)
        (programs / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        shutil.copy(Path(__file__).with_name("unit_starter.py"), programs / "systemctl")
        for name in ("sudo", "systemctl"):
            (programs / name).chmod(0o755)
        yield box
    finally:
        shutil.rmtree(folder)


def lend_environment(box: BoxRoot) -> None:
    """Let each clone of Tidemark have the Python packages of this checkout: installing them takes minutes."""
    hook = box.path("/usr/share/git-core/templates/hooks/post-checkout")
    hook.parent.mkdir(parents=True, exist_ok=True)
    packages = (ROOT / ".venv").resolve()
    hook.write_text(f"#!/bin/sh\n[ ! -f tidemark ] || [ -e .venv ] || ln -s '{packages}' .venv\n")
    hook.chmod(0o755)


def lend_builds(box: BoxRoot, builds: Sequence[Path]) -> None:
    """Give the home of a box finished builds: compiling them takes a quarter of an hour."""
    home = "/var/lib/tidemark/builds"
    copies = " ".join(map(str, builds))
    box.shell(f"mkdir -p {home} && cp -a {copies} {home} && chown -R tidemark: {home}")
