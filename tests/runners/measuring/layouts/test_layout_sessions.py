"""Sessions with layouts: who may have them, which round has which, and what the history knows of it."""

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from build.host import HostError
from build.version import parse_version
from history.stats.repeated_intervals import Design
from history.store.records import LAYOUT_SEEDS, LAYOUTS
from runners.cli import parser
from runners.commands.run import request_of
from runners.measuring.layouts import LayoutError, layout_options, seeds_of
from runners.measuring.sequential_verdicts import SequentialVerdicts
from tests.runners.measuring.journal import Journal
from tests.runners.measuring.test_rounds import NEW, OLD, carry_out

BASE = parse_version("postgres@17.11")


def asked(*words: str) -> argparse.Namespace:
    return parser().parse_args(["run", *words])


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--layouts", "1"], "1 layouts do not show how much layouts differ"),
        (["--layouts", "2"], "2 layouts do not show"),
        (["--layouts", "8", "--repetitions", "5"], "8 layouts need a round each, and a step has 5"),
        (["--layouts", "8", "--repetitions", "5", "--until-decided"], "8 layouts need a round each"),
        (["--layouts", "3", "--mode", "long"], "in long mode servers stay up"),
        (["--layouts", "3", "--exact-only"], "instructions do not depend on where functions lie"),
    ],
)
def test_what_cannot_have_layouts_is_refused(words: list[str], refusal: str) -> None:
    with pytest.raises(LayoutError, match=refusal) as error:
        request_of(asked(*words, "postgres@17.11", "postgres@18.6"))
    assert error.value.hint


def test_an_engine_that_cannot_is_refused() -> None:
    with pytest.raises(LayoutError, match="MySQL once more has not been tried"):
        request_of(asked("--layouts", "3", "mysql@9.7.2", "mysql@9.7.2#twin"))


def test_without_the_linker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "gcc").symlink_to(shutil.which("gcc") or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match=r"layouts need ld\.lld"):
        request_of(asked("--layouts", "3", "postgres@17.11", "postgres@18.6"))


def test_every_layout_gets_a_round_without_being_asked_for_rounds() -> None:
    request = request_of(asked("--layouts", "8", "postgres@17.11", "postgres@18.6"))
    assert (request.layouts, request.repetitions) == (8, 8)
    plain = request_of(asked("postgres@17.11", "postgres@18.6"))
    assert (plain.layouts, plain.repetitions) == (0, plain.profile.repetitions)


def test_seeds_are_drawn_for_each_side_and_session_and_known_again() -> None:
    seeds = seeds_of("c0ffee01", BASE, 4)
    assert seeds == seeds_of("c0ffee01", BASE, 4), "a resumed session has its layouts again"
    others = (*seeds_of("c0ffee01", parse_version("postgres@17.11#twin"), 4), *seeds_of("c0ffee02", BASE, 4))
    assert len({*seeds, *others}) == 12
    assert all(0 < seed < 2**31 for seed in (*seeds, *others))


def test_the_session_says_its_layouts() -> None:
    request = request_of(asked("--layouts", "3", "postgres@17.11", "postgres@18.6"))
    options = layout_options(request, "c0ffee01")
    assert options[LAYOUT_SEEDS] == {
        name: seeds_of("c0ffee01", parse_version(name), 3) for name in ("postgres@17.11", "postgres@18.6")
    }
    assert "LLD" in str(options[LAYOUTS])
    assert layout_options(replace(request, layouts=0), "c0ffee01") == {}


def test_rounds_take_the_layouts_in_turns_on_both_sides(journal: Journal) -> None:
    layouts = {
        str(build.version): [replace(build, prefix=Path(f"/layout{number}")) for number in (1, 2, 3)]
        for build in (OLD, NEW)
    }
    carry_out(journal, (OLD, NEW), 4, layouts=layouts)
    runs = [line for line in journal.lines if line.startswith(("use", "run"))]
    expected = []
    for turn, number in enumerate((1, 2, 3, 1)):
        # Servers start in reverse order in every other round.
        releases = ("18.6", "17.11") if turn % 2 else ("17.11", "18.6")
        for step in ("update-index", "delete"):
            expected += [f"use layout{number} of {release}" for release in releases]
            expected.append(f"run 17.11 18.6 {step}")
    assert runs == expected


def test_a_session_until_decided_goes_on_while_layouts_disagree() -> None:
    design = Design(steps=1, least=12, cap=20)
    rounds = {number: 1000.0 * (0.93, 0.97, 0.90)[number % 3] for number in range(1, 13)}

    def open_after(layouts: int) -> list[str]:
        verdicts = SequentialVerdicts("old", ["new"], design, 0.02, {}, layouts=layouts)
        for number, qps in rounds.items():
            verdicts.add("insert", number, {"old": 1000.0, "new": qps})
        return verdicts.open_steps(["insert"], 12)

    assert open_after(0) == []
    assert open_after(3) == ["insert"]
