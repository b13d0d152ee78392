"""The numbers in the documents are those in the code.

tests/docs/figures/NAME.txt has the sentences of docs/NAME.md whose numbers come from the code, a line each,
or as much of them as finds them. In place of a number a line has {NAME}, which is what it has to be:
`module.CONSTANT` (attributes, indexes and keys below it after further dots), `SUITE.key`,
`SUITE.profile.key`, `SUITE.step.key` or one of its options, `lua.NAME` of the write-heavy script, or
`computed.NAME` of COMPUTED below; then perhaps `*N` or `/N`. White space in a document does not matter.
"""

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks.output.intervals import ratio_interval, simultaneous_confidence
from build.home import ROOT
from build.version import Engine
from history.comparison.options import CONFIDENCE, THRESHOLD
from history.stats.noise_model import Noise
from history.stats.repeated_intervals import Design, smallest_visible
from suites.capabilities import CapabilityError, knows_setting
from suites.definition import load_suite, suite_names
from suites.engines import own_sizes
from suites.sizing import Hardware, sizes
from tests.docs.test_docs import WRITE_HEAVY, build_of, configuration, room

FIGURES = Path(__file__).parent / "figures"
FILES = sorted(FIGURES.rglob("*.txt"))
STATISTICS = ("method", "intervals")
"""Documents whose numbers all come from the code."""
GIB = 1024**3

NUMBER = r"(\d[\d,]*(?:\.\d+)?)"
PLACE = re.compile(r"\{([\w.-]+(?:\([\d,]+\))?(?:[*/][\d.e]+)?)\}")

DECIDING = """suites.sizing suites.slices suites.turns.load_values suites.generators.load
suites.generators.pgbench.client suites.generators.pgbench.loading suites.generators.sysbench
suites.postgres.configuration suites.postgres.reset
suites.postgres.server
suites.data_sets history.comparison.compare
history.stats.noise_model history.stats.repeated_intervals history.stats.estimators
history.stats.contrary_evidence"""
"""Modules whose numeric constants decide what a number comes to: each of them is in a sentence."""

UNINTERESTING = {"PORT", "LOAD_SECONDS_PER_MILLION_ROWS", "MIN_VARIANCE", "LESS", "SAME", "MORE"}

FREE = {
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
"""Numbers of these documents that no sentence ties to the code: small counts, releases, an example."""


# --- what a name means


def _margin(pairs: int, steps: int) -> float:
    """Half-width on the logarithm over the standard deviation of the logarithms, from the real interval."""
    logs = [(-1.0) ** i for i in range(pairs)]
    mean = sum(logs) / pairs
    deviation = math.sqrt(sum((log - mean) ** 2 for log in logs) / (pairs - 1))
    confidence = simultaneous_confidence(CONFIDENCE / 100, steps)
    interval = ratio_interval([1.0] * pairs, [math.exp(log) for log in logs], confidence)
    assert interval is not None
    return math.log(interval.high / interval.low) / 2 / deviation


def _is_served(major: int) -> bool:
    with contextlib.suppress(CapabilityError):
        return bool(configuration(f"{major}.0"))
    return False


DIRECT = (Engine.MYSQL, Engine.MARIADB)
IO = sizes(WRITE_HEAVY, WRITE_HEAVY.profile("io"), Hardware(2, 64 * 1024**3))
"""Of a server with the memory that profile io declares."""

COMPUTED: dict[str, Callable[..., float]] = {
    "steps": lambda: len(WRITE_HEAVY.steps),
    "confidence_of_one": lambda: 100 * simultaneous_confidence(CONFIDENCE / 100, len(WRITE_HEAVY.steps)),
    "false_verdicts": lambda: (100 - CONFIDENCE) / 2,
    "margin": _margin,
    "confidence_of_one_step": lambda: 100 * (1 - Design().step_error),
    "critical": lambda rounds, df=math.inf: Design().margin(rounds, df),
    "one_look": lambda df=math.inf: Design(least=20, cap=20).margin(20, df),
    "visible": lambda rounds: 100 * smallest_visible(Design(), Noise(0.02, 20), rounds, THRESHOLD / 100),
    "single_thread_cores": lambda: max(cores for cores in range(1, 200) if room(cores).threads == 1),
    "threads_on_48": lambda: room(48).threads,
    "tables_on_48": lambda: room(48).data.tables,
    "least_buffer_mib": lambda: room(1, 1).buffer_bytes / 1024**2,
    "own_cache_mib": lambda engine: own_sizes(DIRECT[int(engine)], IO, {}).buffer_bytes / 1024**2,
    "oldest_postgres": lambda: min(filter(_is_served, range(9, 99))),
    "io_method_since": lambda: min(n for n in range(9, 99) if knows_setting(build_of(f"{n}.0"), "io_method")),
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
        if isinstance(value, Mapping):
            value = value[part]
        else:
            value = value[int(part)] if part.isdigit() else getattr(value, part)
    return value


def resolve(written: str) -> float:
    match = re.fullmatch(r"([\w.-]+)(?:\(([\d,]+)\))?(?:([*/])([\d.e]+))?", written)
    assert match is not None, f"{written} is not a name"
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


def is_true(number: str, written: str) -> bool:
    """Constants exactly; what is computed as far as the document writes digits."""
    said, meant = float(number.replace(",", "")), resolve(written)
    digits = len(number.partition(".")[2])
    if written.startswith("computed."):
        return math.isclose(said, round(meant, digits))
    return math.isclose(said, meant)


# --- numbers


def sentences(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def document_of(file: Path) -> Path:
    name = file.relative_to(FIGURES).with_suffix(".md")
    return next(path for path in (ROOT / "docs" / name, ROOT / name) if path.is_file())


def plain(text: str) -> str:
    return " ".join(text.split())


def found(sentence: str, text: str) -> Iterator[re.Match[str]]:
    """Where `text` has the sentence, with any numbers in their places."""
    literal = PLACE.split(sentence)[::2]
    return re.finditer(NUMBER.join(map(re.escape, literal)), text)


def wrong_numbers(sentence: str, text: str) -> list[str]:
    """What is wrong with the numbers of a sentence in `text`; empty if they are those of the code."""
    places = list(found(sentence, text))
    if not places:
        return [f"the document has no longer: {sentence}"]
    names = PLACE.findall(sentence)
    numbers = [(number, name) for place in places for number, name in zip(place.groups(), names, strict=True)]
    return [f"{number}: {name} is {resolve(name):g}" for number, name in numbers if not is_true(number, name)]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_figures(file: Path) -> None:
    text = plain(document_of(file).read_text(encoding="utf-8"))
    listed = sentences(file)
    assert [sentence for sentence in listed if not PLACE.search(sentence)] == [], (
        "a sentence without a number"
    )
    assert [wrong for sentence in listed for wrong in wrong_numbers(sentence, text)] == []


def test_a_wrong_number_is_seen() -> None:
    assert is_true("3", "history.stats.estimators.MINIMUM_REPETITIONS")
    assert is_true("50", "write-heavy.delete.most_work_to_rows*100")
    assert not is_true("0.5", "write-heavy.delete.most_work_to_rows*100")
    assert not is_true("8.2", "computed.margin(3,10)")
    sentence = "needs at least {history.stats.estimators.MINIMUM_REPETITIONS} rounds"
    assert wrong_numbers(sentence, "A verdict needs at least 3 rounds.") == []
    assert wrong_numbers(sentence, "A verdict needs at least 4 rounds.") != []
    assert wrong_numbers(sentence, "A verdict needs three rounds.") != []


def test_every_constant_that_decides_a_number_is_in_a_sentence() -> None:
    names = {
        part
        for file in FILES
        for places in PLACE.findall(file.read_text())
        for part in re.split(r"\W", places)
    }
    constants = {
        name
        for module in map(import_module, DECIDING.split())
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, int | float)
    }
    assert not constants - names - UNINTERESTING


@pytest.mark.parametrize("name", STATISTICS)
def test_a_document_about_the_method_holds_no_other_numbers(name: str) -> None:
    lines = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8").splitlines()
    text = plain("\n".join(line for line in lines if not line.startswith("|")))
    tied = [
        place.span(group)
        for sentence in sentences(FIGURES / f"{name}.txt")
        for place in found(sentence, text)
        for group in range(1, len(place.groups()) + 1)
    ]
    for start, end in tied:
        text = f"{text[:start]}{'_' * (end - start)}{text[end:]}"
    bare = re.sub(r"`[^`]*`|\[decision\s+\d+\]\([^)]*\)", "", text)
    assert not set(re.findall(r"(?<![\w.])\d+(?:[.,]\d+)*", bare)) - FREE
