"""The commits of the simulated year: a repository of text files, and what each commit does to the server."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.service.planted import Incident, PlantedYear, midnight, tip_on

BRANCH = "postgres@master"
HASH = 12
"""Hex digits of a commit in the name of a version."""

_ALL = "refs/heads/all"


class CommitYear:
    """A repository whose branch `master` moves from day to day."""

    def __init__(self, folder: Path, year: PlantedYear) -> None:
        """Write all commits of a year into a new repository in a folder that does not exist."""
        self.folder, self._year = folder, year
        self._git("init", "--quiet", "--initial-branch=master", str(folder))
        self.names = self._write(1 + tip_on(year.days - 1))
        self._numbers = {name[:HASH]: number for number, name in enumerate(self.names)}

    def land(self, day: int) -> None:
        """Let the branch stand where it is in the night of a day."""
        self._git("-C", str(self.folder), "update-ref", "refs/heads/master", self.tip(day))

    def tip(self, day: int) -> str:
        """Return the newest commit in the night of a day, 40 hex digits."""
        return self.names[tip_on(day)]

    def pair(self, day: int) -> tuple[str, str]:
        """Return the tips of the day before and of a day, as messages show them."""
        return self.tip(day - 1)[:HASH], self.tip(day)[:HASH]

    def whole_name(self, ref: str) -> str:
        """Return the 40 hex digits of a commit that is named by its first ones."""
        return self.names[self._numbers[ref]]

    def speed(self, ref: str | None, step: str) -> float:
        """Return how fast a commit is in a step, over what it was at first; None stands for the base."""
        factor = 1.0
        if ref is not None:
            number = self._numbers[ref]
            for regression in self._year.regressions:
                ends = len(self.names) if regression.fixed is None else tip_on(regression.fixed)
                if regression.step == step and tip_on(regression.day) <= number < ends:
                    factor *= 1 - regression.percent / 100
        return factor

    def suffers(self, ref: str | None, what: Incident) -> bool:
        """Return whether a commit does not compile, or crashes; None stands for the base."""
        number = -1 if ref is None else self._numbers[ref]
        return any(
            incident.what is what and tip_on(incident.first) <= number < tip_on(incident.until)
            for incident in self._year.incidents
        )

    def _write(self, count: int) -> list[str]:
        paths = {tip_on(regression.day): regression.path for regression in self._year.regressions}
        days = {tip_on(day): day for day in range(self._year.days)}
        day, lines = 0, list[str]()
        for number in range(count):
            day = days.get(number, day)
            seconds = int(midnight(day).timestamp()) - 12 * 3600 + number
            lines += [f"commit {_ALL}", f"mark :{number + 1}"]
            lines.append(f"committer Ann Author <ann@example.org> {seconds} +0000")
            lines += _data(f"commit {number}")
            path = paths.get(number, "src/executor.c")
            lines += [f"M 100644 inline {path}", *_data(f"int version = {number};")]
        marks = self.folder / "marks"
        words = ["-C", str(self.folder), "fast-import", "--quiet", f"--export-marks={marks}"]
        self._git(*words, given="\n".join([*lines, ""]))
        known = dict(line.split() for line in marks.read_text(encoding="utf-8").splitlines())
        return [known[f":{number + 1}"] for number in range(count)]

    def _git(self, *words: str, given: str = "") -> None:
        subprocess.run(["git", *words], input=given, text=True, check=True, env=dict(os.environ))


def _data(text: str) -> Sequence[str]:
    return [f"data {len(text)}", text]
