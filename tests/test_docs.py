"""The documents say what the code does: numbers, keys, commands and help texts.

A number in Markdown that is followed by `<!--=NAME-->` has to be what NAME is in the code: `module.CONSTANT`
(attributes and indexes below it after further dots), `SUITE.key`, `SUITE.profile.key`,
`SUITE.step.key` or one of its options, `lua.NAME` of the write-heavy script, or `computed.NAME` of COMPUTED
below; then perhaps `*N` or `/N`. After a wanted change of a help text rewrite it, and read the difference:

    TIDEMARK_REWRITE_GOLDENS=1 .venv/bin/python -m pytest tests/test_docs.py
"""

import contextlib
import math
import os
import re
import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import compare
from build.build import Build
from build.home import ROOT
from build.version import parse_version
from history.comparison.compare import CONFIDENCE, THRESHOLD
from history.stats.estimators import ratio_interval, simultaneous_confidence
from history.stats.repeated_intervals import Design, Noise, smallest_visible
from runners import cli
from runners.commands import bench, calibrate, run
from runners.measuring.request import Request
from suites.capabilities import CapabilityError, knows_setting
from suites.definition import load_suite, suite_names
from suites.keys.profile import Profile as ProfileKeys
from suites.postgres.configuration import render
from suites.sizing import Hardware, sizes

CLI = ROOT / "docs/cli.md"
METHOD = ROOT / "docs/method.md"
SUITES = ROOT / "docs/suites.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
HELP_COLUMNS = "100"
GIB = 1024**3

WRITE_HEAVY = load_suite("write-heavy")
TIE = re.compile(r"(\d[\d,]*(?:\.\d+)?)<!--=(.+?)-->")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

DECIDING = """suites.sizing suites.slices suites.step suites.generators.load suites.generators.pgbench
suites.generators.sysbench suites.postgres.configuration suites.postgres.reset suites.postgres.server
suites.data_sets history.comparison.compare
history.stats.noise_model history.stats.repeated_intervals history.stats.estimators
history.stats.contrary_evidence"""
"""Modules whose numeric constants decide what a number comes to: each constant is tied somewhere."""

UNINTERESTING = {"PORT", "LOAD_SECONDS_PER_MILLION_ROWS", "LEAST_VARIANCE", "LESS", "SAME", "MORE"}

UNTIED = {
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "8",
    "8.0.30",
    "9.5",
    "5.7",
    "18",
    "20",
    "32",
    "48",
    "1.0",
    "1.0.20",
}
"""Numbers that docs/method.md may hold without a tie: small counts, releases, the machine of an example."""


# --- what a tie's name means


def _room(cores: int = 2, memory_bytes: int = 8 * GIB) -> Any:
    return sizes(WRITE_HEAVY, WRITE_HEAVY.profile("short"), Hardware(cores, memory_bytes))


def _margin(pairs: int, steps: int) -> float:
    """Half-width on the logarithm over the standard deviation of the logarithms, from the real interval."""
    logs = [(-1.0) ** i for i in range(pairs)]
    mean = sum(logs) / pairs
    deviation = math.sqrt(sum((each - mean) ** 2 for each in logs) / (pairs - 1))
    confidence = simultaneous_confidence(CONFIDENCE / 100, steps)
    interval = ratio_interval([1.0] * pairs, [math.exp(each) for each in logs], confidence)
    assert interval is not None
    return math.log(interval.high / interval.low) / 2 / deviation


def _configuration(release: str) -> str:
    """postgresql.conf on the example's machine. Raises CapabilityError for a release that is too old."""
    return render(_build(release), _room(8, 32 * GIB), Request.durability, Path("/home"), {})


def _build(release: str) -> Build:
    return Build(parse_version(f"postgres@{release}"), release, "key", Path("/nowhere"), {})


def _is_served(major: int) -> bool:
    with contextlib.suppress(CapabilityError):
        return bool(_configuration(f"{major}.0"))
    return False


COMPUTED: dict[str, Callable[..., float]] = {
    "steps": lambda: len(WRITE_HEAVY.steps),
    "confidence_of_one": lambda: 100 * simultaneous_confidence(CONFIDENCE / 100, len(WRITE_HEAVY.steps)),
    "margin": _margin,
    "confidence_of_one_step": lambda: 100 * (1 - Design().step_error),
    "critical": lambda rounds, df=math.inf: Design().margin(rounds, df),
    "one_look": lambda df=math.inf: Design(least=20, cap=20).margin(20, df),
    "visible": lambda rounds: 100 * smallest_visible(Design(), Noise(0.02, 20), rounds, THRESHOLD / 100),
    "single_thread_cores": lambda: max(cores for cores in range(1, 200) if _room(cores).threads == 1),
    "threads_on_48": lambda: _room(48).threads,
    "tables_on_48": lambda: _room(48).data.tables,
    "least_buffer_mib": lambda: _room(1, 1).buffer_bytes / 1024**2,
    "oldest_postgres": lambda: min(filter(_is_served, range(9, 99))),
    "io_method_since": lambda: min(n for n in range(9, 99) if knows_setting(_build(f"{n}.0"), "io_method")),
}


def _in_script(pattern: str) -> float:
    """The number that the write-heavy script has at the group of `pattern`."""
    match = re.search(pattern, (WRITE_HEAVY.folder / "write_heavy.lua").read_text(encoding="utf-8"))
    assert match is not None, f"{pattern} is not in the script"
    return float(match[1])


def _of_suite(name: str, rest: list[str]) -> Any:
    suite = load_suite(name)
    steps = {step.name: step for step in suite.steps}
    if rest[0] in suite.profiles:
        return getattr(suite.profiles[rest[0]], rest[1])
    if rest[0] in steps:
        return {**vars(steps[rest[0]]), **steps[rest[0]].options}[rest[1]]
    return getattr(suite, rest[0])


def _of_module(parts: list[str]) -> Any:
    lengths = range(len(parts), 0, -1)
    length = next(n for n in lengths if (ROOT / "/".join(parts[:n])).with_suffix(".py").exists())
    value: Any = import_module(".".join(parts[:length]))
    for part in parts[length:]:
        value = value[int(part)] if part.isdigit() else getattr(value, part)
    return value


def resolve(tie: str) -> float:
    match = re.fullmatch(r"([\w.-]+)(?:\(([\d,]+)\))?(?:([*/])([\d.e]+))?", tie)
    assert match is not None, f"{tie} is not a name"
    name, arguments, operator, factor = match.groups()
    head, *rest = name.split(".")
    if head == "computed":
        value = COMPUTED[rest[0]](*map(int, arguments.split(",") if arguments else ()))
    elif head == "lua":
        value = _in_script(rf"\b{rest[0]} = (?:\{{\"[^\"]*\", )?([\d.]+)")
    elif head in suite_names():
        value = _of_suite(head, rest)
    else:
        value = _of_module([head, *rest])
    scale = float(factor) if factor else 1.0
    return float(value) / scale if operator == "/" else float(value) * scale


def is_true(number: str, tie: str) -> bool:
    """Constants exactly; what is computed as far as the document writes digits."""
    said, meant = float(number.replace(",", "")), resolve(tie)
    digits = len(number.partition(".")[2])
    if tie.startswith("computed."):
        return math.isclose(said, round(meant, digits))
    return math.isclose(said, meant)


# --- numbers


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_ties(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    ties = TIE.findall(text)
    assert len(ties) + text.count("`<!--=") == text.count("<!--="), "a tie has to follow a number at once"
    wrong = [f"{number}: {tie} is {resolve(tie):g}" for number, tie in ties if not is_true(number, tie)]
    assert not wrong


def test_a_wrong_number_is_seen() -> None:
    assert is_true("3", "history.stats.estimators.MINIMUM_REPETITIONS")
    assert not is_true("4", "history.stats.estimators.MINIMUM_REPETITIONS")
    assert is_true("50", "write-heavy.delete.most_work_to_rows*100")
    assert not is_true("0.5", "write-heavy.delete.most_work_to_rows*100")
    assert not is_true("8.2", "computed.margin(3,10)")


def test_every_constant_that_decides_a_number_is_tied() -> None:
    text = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    tied = {name for _, tie in TIE.findall(text) for name in re.split(r"\W", tie)}
    constants = {
        name
        for module in map(import_module, DECIDING.split())
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, int | float)
    }
    assert not constants - tied - UNINTERESTING


def test_the_method_holds_no_other_numbers() -> None:
    lines = METHOD.read_text(encoding="utf-8").splitlines()
    prose = "\n".join(line for line in lines if not line.startswith("|"))
    bare = re.sub(r"`[^`]*`|\[decision\s+\d+\]\([^)]*\)", "", TIE.sub("", prose))
    assert not set(re.findall(r"(?<![\w.])\d+(?:[.,]\d+)*", bare)) - UNTIED


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
    rows = table(METHOD, "| key | smoke | short | long |")
    others = {"title", "scale", "tables", "clients", "options", "limit_seconds", "keeps_copy"}
    assert set(rows) == ProfileKeys.model_fields.keys() - others
    for place, name in enumerate(("smoke", "short", "long")):
        profile = WRITE_HEAVY.profile(name)
        for key, cells in rows.items():
            value = getattr(profile, key)
            wanted = [str(each) for each in (value if isinstance(value, tuple) else (value,))]
            said = [_plain(each) for each in cells[place].split(" to ")]
            assert said == [_plain(each) for each in wanted], f"{name}: {key}"


def test_configuration() -> None:
    lines = [line.split(" = ", 1) for line in _configuration("18.6").splitlines() if line and line[0] != "#"]
    settings = {name: value for name, value in lines if name != "unix_socket_directories"}
    documented = table(METHOD, "| setting | value |")
    assert {name: cells[0].strip("`") for name, cells in documented.items()} == settings


# --- the example, commands and help


def example(folder: Path) -> None:
    """Write the files that docs/suites.md shows below `folder`."""
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


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_parse(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example(tmp_path)
    monkeypatch.chdir(tmp_path)
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
        assert kind == "import" or all(map(parse_version, others[1:] if kind == "export" else arguments.what))
    elif arguments.command == "bench":
        assert (ROOT / "benchmarks" / arguments.name).with_suffix(".py").is_file()


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
