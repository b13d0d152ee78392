"""What git writes to stderr: how far a transfer is, which is shown, and its messages, which errors tell."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from build.progress import ProgressTask

_FAR = re.compile(r"(remote: )?([A-Z][A-Za-z ]+): +\d+% \((\d+)/(\d+)\)")
_ALONE = re.compile(r"remote: (?:[A-Z][A-Za-z ]+: +\d+|Total \d+ \()|[A-Z][A-Za-z ]+ objects: +\d+")
"""Numbers without a total, and the summary of the remote's counts."""

_REF = re.compile(r"From |POST git-| [ +*t=-] .* -> ")
"""What a fetch says of refs that were updated."""

_RECEIVED = ("Receiving objects", "Unpacking objects")

_LINE_END = re.compile(rb"[\r\n]+")


def take_line(line: str, task: ProgressTask) -> bool:
    """Show what a line says of a transfer; return whether it is no message of git's beside that."""
    if found := _FAR.match(line):
        remote, doing, done, total = found.groups()
        if doing in _RECEIVED:
            task.detail("")
            task.update(float(done), float(total))
        elif not remote or doing.startswith(("Counting", "Compressing")):
            where = "the server: " if remote else ""
            task.detail(f"{where}{doing.lower()}, {int(done):,} of {int(total):,}")
        return True
    return bool(_ALONE.match(line) or _REF.match(line))


class TransferMessages:
    """Reads what git writes to `stream`, a descriptor for its stderr."""

    def __init__(self, task: ProgressTask) -> None:
        self._reads, self.stream = os.pipe()
        self._task, self._kept = task, list[str]()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        rest = b""
        while chunk := os.read(self._reads, 65536):
            *lines, rest = _LINE_END.split(rest + chunk)
            self._take(lines)
        self._take([rest])

    def _take(self, lines: list[bytes]) -> None:
        texts = (line.decode(errors="replace") for line in lines if line)
        self._kept += [text for text in texts if not take_line(text, self._task)]

    def text(self) -> str:
        """Return its messages once every process that writes to `stream` has ended."""
        if self.stream >= 0:
            os.close(self.stream)
            self.stream = -1
        self._thread.join()
        return "\n".join(self._kept)

    def close(self) -> None:
        """Give back the descriptors."""
        self.text()
        os.close(self._reads)


@contextmanager
def transfer_messages(task: ProgressTask) -> Iterator[TransferMessages]:
    """Yield the messages of a git command whose transfer `task` shows."""
    messages = TransferMessages(task)
    try:
        yield messages
    finally:
        messages.close()
