"""Who sees what other processes are told: their arguments, and their environment."""

import threading
from pathlib import Path

import psutil


class Onlooker:
    """Looks at the arguments of all processes, and at the environment of those below one, while they live."""

    def __init__(self, pid: int, pause_seconds: float = 0.02) -> None:
        self._pause_seconds = pause_seconds
        self.arguments: set[str] = set()
        self.environments: dict[int, tuple[str, str]] = {}
        """Process to its program and environment."""
        self._root, self._done = pid, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Onlooker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(self._pause_seconds):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                self.arguments.add(_text(path))
            try:
                below = psutil.Process(self._root).children(recursive=True)
            except psutil.Error:
                continue
            for child in below:
                path = Path(f"/proc/{child.pid}")
                # Between fork and exec a child still shows what its parent was started with: of a child that
                # begins its program while it is looked at, the environment may be the parent's.
                words = _text(path / "cmdline")
                told = _text(path / "environ")
                if told and words != _text(Path(f"/proc/{self._root}/cmdline")):
                    self.environments[child.pid] = (_text(path / "comm").strip(), told)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""
