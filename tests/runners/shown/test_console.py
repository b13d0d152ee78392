"""What a log gets of long tasks: where they are, how long they still take, and not too often."""

import re
import time

import pytest

from build.progress import in_words
from runners import console
from runners.console import Lines


class Log:
    """A log, and the seconds that pass."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.seconds = 0.0
        self.shown = Lines(lambda line: self.lines.append(line.split(" ", 1)[1]), lambda: self.seconds)

    def after(self, seconds: float) -> list[str]:
        """The lines that are written when so many seconds have passed."""
        self.lines.clear()
        self.seconds += seconds
        self.shown.tell()
        return self.lines


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(console, "TICK_SECONDS", 3600.0)
    return Log()


def test_a_long_task_is_told_with_the_time_left(log: Log) -> None:
    with log.shown.task("compile postgres@18.6", 1000, "files") as task:
        assert log.after(29) == []
        assert log.after(2) == ["compile postgres@18.6: 31 s so far"]
        task.update(1)
        log.seconds += 60
        task.update(101)
        assert log.after(0) == ["compile postgres@18.6: 101 of 1,000 files, about 9 min left"]
        assert log.after(29) == [], "at most a line every 30 s"
        task.rename("postgres@18.6: compile contrib")
        assert log.lines == ["postgres@18.6: compile contrib"]
        task.update(600)
        assert log.after(31) == ["postgres@18.6: compile contrib: 600 of 1,000 files, about 80 s left"]


def test_a_task_says_what_it_waits_for_and_hours_take_few_lines(log: Log) -> None:
    with log.shown.task("measuring", 30, "rounds of steps") as task:
        task.rename("round 1: insert")
        task.detail("the server of mysql@9.7.0 starts under callgrind")
        assert log.after(40) == [
            "round 1: insert: the server of mysql@9.7.0 starts under callgrind: 40 s so far"
        ]
        log.seconds += 3600
        log.after(0)
        assert log.after(150) == [], "5 % of an hour"
        assert len(log.after(60)) == 1


def test_the_task_that_began_last_is_told(log: Log) -> None:
    with log.shown.task("outer"):
        with log.shown.task("inner"):
            assert log.after(60) == ["inner: 60 s so far"]
        assert log.after(60) == ["outer: 2 min so far"]


def test_lines_come_without_being_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(console, "MIN_SILENCE", 0.02)
    lines: list[str] = []
    with Lines(lines.append).task("slow"):
        for _ in range(500):
            if len(lines) > 1:
                break
            time.sleep(0.01)
    assert re.fullmatch(r"\S+ slow: 0 s so far", lines[1])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5360, "89 min"), (5400, "1 h 30 min"), (7200, "2 h")],
)
def test_durations_are_said_as_people_say_them(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
