"""The documents say what the code does: keys, commands and help texts.

After a wanted change of a help text rewrite it, and read the difference:

    TIDEMARK_REWRITE_GOLDENS=1 .venv/bin/python -m pytest tests/docs/test_docs.py
"""

import contextlib
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import compare
from build.finished_build import Build
from build.home import ROOT
from build.version import parse_version
from runners import cli
from runners.commands import bench, calibrate, run
from runners.measuring.request import Request
from suites.control_groups.declared import DECLARED
from suites.definition import load_suite, suite_names
from suites.keys.profile import Profile as ProfileKeys
from suites.postgres.configuration import render
from suites.sizing import Hardware, sizes
from tests.manifests import a_manifest

CLI = ROOT / "docs/cli.md"
METHOD, SERVERS = ROOT / "docs/method.md", ROOT / "docs/servers.md"
SUITES = ROOT / "docs/suites.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
HELP_COLUMNS = "100"
GIB = 1024**3

WRITE_HEAVY = load_suite("write-heavy")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def room(cores: int = 2, memory_bytes: int = 8 * GIB) -> Any:
    return sizes(WRITE_HEAVY, WRITE_HEAVY.profile("short"), Hardware(cores, memory_bytes))


def configuration(release: str) -> str:
    """postgresql.conf on the example's machine. Raises CapabilityError for a release that is too old."""
    return render(build_of(release), room(8, 32 * GIB), Request.durability, Path("/home"), {})


def build_of(release: str) -> Build:
    return Build(parse_version(f"postgres@{release}"), release, "key", Path("/nowhere"), a_manifest())


# --- tables


def table(document: Path, head: str) -> dict[str, list[str]]:
    """The rows below the line that begins with `head`: first cell without backquotes -> the other cells."""
    _, found, rest = document.read_text(encoding="utf-8").partition(f"\n{head}")
    assert found, f"{document.name} has no table {head}"
    rows = {}
    for line in rest.splitlines()[2:]:
        if not line.startswith("|"):
            break
        first, *others = (cell.strip() for cell in line.strip("|").split(" |"))
        rows[first.strip("`| ")] = [cell.strip("| ") for cell in others]
    return rows


def _plain(cell: str) -> str:
    with contextlib.suppress(ValueError):
        return f"{float(cell.replace(',', '')):g}"
    return cell


def test_steps_and_profiles() -> None:
    assert list(table(METHOD, "| step | one transaction |")) == [step.name for step in WRITE_HEAVY.steps]
    rows = table(SERVERS, "| key | smoke | short | io | long |")
    others = {"title", "scale", "tables", "clients", "options", "limit_seconds", "keeps_copy", *DECLARED}
    assert set(rows) == ProfileKeys.model_fields.keys() - others
    for place, name in enumerate(("smoke", "short", "io", "long")):
        profile = WRITE_HEAVY.profile(name)
        for key, cells in rows.items():
            value = getattr(profile, key)
            wanted = [str(text) for text in (value if isinstance(value, tuple) else (value,))]
            said = [_plain(part) for part in cells[place].split(" to ")]
            assert said == [_plain(text) for text in wanted], f"{name}: {key}"


def test_configuration() -> None:
    lines = [line.split(" = ", 1) for line in configuration("18.6").splitlines() if line and line[0] != "#"]
    settings = {name: value for name, value in lines if name != "unix_socket_directories"}
    documented = table(SERVERS, "| setting | value |")
    assert {name: cells[0].strip("`") for name, cells in documented.items()} == settings


# --- the example, commands and help


def example(folder: Path) -> None:
    """Write the files that docs/suites.md shows below `folder`, where those of reported workloads are too."""
    (folder / "docs/results").mkdir(parents=True)
    (folder / "docs/results/reports").symlink_to(ROOT / "docs/results/reports")
    shown = re.findall(
        r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", SUITES.read_text(), re.MULTILINE | re.DOTALL
    )
    for name, text in shown:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "fix.patch").touch()


def commands() -> list[list[str]]:
    """Words of each command line of ours in a fenced block, up to a comment, pipe or list operator."""
    found = []
    for document in DOCUMENTS:
        text = re.sub(r"<!-- output of: .*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
        blocks = "\n".join(block for _, block in FENCE.findall(text)).replace("\\\n", " ")
        for line in re.findall(r"^(?:[A-Z_]+=\S* )*(\./(?:tidemark|compare\.py)\b.*)", blocks, re.MULTILINE):
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split, lexer.commenters = True, ""  # postgres@18.6#mine is one word
            words = list(lexer)
            end = next((i for i, word in enumerate(words) if set(word) <= set("&|;<>#")), len(words))
            found.append(words[:end])
    return found


@pytest.mark.deep("figures of the documents are computed again from whole kept histories")
@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_parse(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    program, *rest = words
    if program == "./compare.py" or rest[0] == "compare":
        arguments = compare.parser().parse_args(rest[rest[:1] == ["compare"] :])
        assert arguments.suite in {None, "transfer", *suite_names()}
        return
    arguments, further = cli.parser().parse_known_args(rest)
    assert not further or arguments.command == "test", f"not understood: {further}"
    requests = {"run": run.request_of, "calibrate": calibrate.request_of}
    if arguments.command in requests:
        requests[arguments.command](arguments)
    elif arguments.command == "build":
        kind, *others = arguments.what
        versions = others[1:] if kind == "export" else arguments.what
        assert kind in ("import", "list", "prune") or all(map(parse_version, versions))
    elif arguments.command == "bench":
        assert arguments.name in bench.names()


HELPS = re.findall(r"^<!-- output of: (.+) -->$", CLI.read_text(encoding="utf-8"), re.MULTILINE)
"""Commands whose help text docs/cli.md shows."""

HELPLESS = {"setup", "demo", "test"}
"""Commands without options of their own."""


def test_every_command_has_its_help() -> None:
    shown = {command.replace("./compare.py", "./tidemark compare").split()[1] for command in HELPS}
    commands = set(re.findall(r"^    ([a-z]+)(?:$| )", cli.parser().format_help(), re.MULTILINE))
    assert shown == (commands - HELPLESS) | {"--help"}


def test_every_benchmark_is_listed() -> None:
    listed = re.findall(r"^\./tidemark bench (\w+)", CLI.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(set(listed)) == bench.names()


@pytest.mark.parametrize("command", HELPS)
def test_help(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", HELP_COLUMNS)
    program, *rest = command.split()
    with pytest.raises(SystemExit):
        compare.main(rest) if program == "./compare.py" else cli.main(rest)
    wanted = f"<!-- output of: {command} -->\n```text\n{capsys.readouterr().out}```\n"
    if os.environ.get("TIDEMARK_REWRITE_GOLDENS"):
        old = rf"<!-- output of: {re.escape(command)} -->\n```text\n.*?^```\n"
        text = re.sub(old, lambda _: wanted, CLI.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        CLI.write_text(text, encoding="utf-8")
    assert wanted in CLI.read_text(encoding="utf-8")
