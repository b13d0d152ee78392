"""What is printed does nothing on a terminal, whoever prints it, and a Screen's own sequences work."""

import io
import sys
from pathlib import Path
from typing import cast

import pytest

from history.escaping.characters import JOINER, REPLACED
from history.escaping.streams import EscapedStream, Styled, escaped_output, unescaped
from history.rendering.plain_table import PlacedField, Screen
from runners.console import Bars, Lines

EVIL = "a\x1b[31mb\x9b2J\u202ec\x07\r\x1b]8;;http://x\x1b\\d\ud800"
SHOWN = f"a{REPLACED}[31mb{REPLACED}2J{REPLACED}c{REPLACED}\n{REPLACED}]8;;http://x{REPLACED}\\d{REPLACED}"


def test_what_is_printed_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with escaped_output():
        print(EVIL, f"@{JOINER}a\tb")
        sys.stderr.writelines([EVIL, "\n"])
        with escaped_output():
            print("\x1b", end="")
    print("\x1b")
    assert capsys.readouterr() == (f"{SHOWN} @{JOINER}a\tb\n{REPLACED}\x1b\n", f"{SHOWN}\n")


def test_a_job_of_github_obeys_no_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    with escaped_output():
        print("::add-mask::a\n  ::error::x\na::b ##[group]c")
    expected = f":{JOINER}:add-mask::a\n  :{JOINER}:error::x\na::b ##{JOINER}[group]c\n"
    assert capsys.readouterr().out == expected


def test_a_screen_alone_colours() -> None:
    file = io.StringIO()
    screen = Screen(cast(io.StringIO, EscapedStream(file)), colours=True)
    screen.line(EVIL, "1;31")
    screen.lines([EVIL])
    screen.table(["step"], [[[PlacedField(EVIL, "2")]]], left=["step"])
    line = SHOWN.replace("\n", " ")
    assert file.getvalue().splitlines() == [
        f"\x1b[1;31m{line}\x1b[0m",
        line,
        "\x1b[1mstep\x1b[0m",
        "─" * len(line),
        f"\x1b[2m{line}\x1b[0m",
    ]


def test_a_table_keeps_its_columns_whatever_is_in_it() -> None:
    file = io.StringIO()
    rows = [[PlacedField("a\nb"), PlacedField("one two three four five six seven eight nine")]]
    rows += [[PlacedField("x" * 1_000_000), PlacedField("1")]]
    Screen(file).table(["step", "notes"], [rows], left=["step", "notes"], gap=2, wraps_last=True)
    head, _, first, second, third = file.getvalue().splitlines()
    assert len(third) < 500
    assert first.startswith("a b ")
    assert head.index("notes") == first.index("one two") == second.index("seven") == third.rindex("1")


def test_a_figure_keeps_its_per_cent_sign_where_a_line_is_wrapped() -> None:
    file = io.StringIO()
    Screen(file, width=28).line("seconds -93.2 %, log -100.0 %")
    row = [PlacedField("b" * 68), PlacedField("the logs of all resets: -100.0 %")]
    Screen(file).table(["a", "note"], [[row]], ["a", "note"], wraps_last=True)
    first, second, *_, above, below = file.getvalue().splitlines()
    assert [first, second] == ["seconds -93.2 %, log", "-100.0 %"]
    assert (above.endswith("the logs of all resets:"), below.strip()) == (True, "-100.0 %")


def test_notes_and_bars_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with escaped_output():
        Lines().note(EVIL)
    assert capsys.readouterr().err[9:] == SHOWN.replace("\n", " ") + "\n"


def test_bars_interpret_no_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, with what others print meanwhile."""
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    hostile = "[/bold]\x1b]0;title\x07[link=http://x]y\x9bm\u202e"
    with escaped_output(), Bars() as bars, bars.task(hostile, 3) as task:
        bars.note(hostile)
        print(hostile, file=sys.stderr)
        task.rename(f"renamed {hostile}")
        task.update(1)
    text = written.getvalue()
    assert text.count("[/bold]") >= 3
    for sequence in ("\x1b]", "\x07", "\x9b", "\u202e"):
        assert sequence not in text
    assert unescaped(sys.stderr) is written


def test_styled_text_is_a_string() -> None:
    assert Styled("\x1b") == "\x1b"
