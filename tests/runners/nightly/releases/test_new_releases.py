"""Releases that a plan lacks: what the summary says, what is followed, and which plans are refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.home import Home
from build.sources.releases import Published
from build.version import Engine, release_numbers
from runners.cli import main
from runners.measuring.session import SessionOutcome
from runners.nightly import night as night_module
from runners.nightly.plan import Plan, PlanError, load_plan
from runners.nightly.releases import new_releases as module
from runners.nightly.releases.new_releases import PUBLISHED, look_for_releases, new_releases, with_followed
from tests.runners.small_plan import small_plan

NOWHERE = Published(frozenset(), (), ("git: no network", "upstream: no network"))

Answer = Callable[..., None]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Have all places answer with these releases; without any, have none answer."""

    def places(*releases: str, problems: tuple[str, ...] = ()) -> None:
        found = Published(frozenset(releases), ("git", "upstream"), problems) if releases else NOWHERE
        monkeypatch.setattr(module, "published_releases", lambda *_: found)

    return places


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def plan_of(tmp_path: Path, followed: str = 'releases = ["18.6"]') -> Plan:
    path = tmp_path / "plan.toml"
    path.write_text(small_plan(["insert"], "", followed=followed))
    return load_plan(path)


@pytest.mark.parametrize(
    ("named", "published", "news"),
    [
        (["17.11", "18.6"], ["18.5", "18.6", "17.11"], []),
        (["17.11", "18.6"], ["18.7", "18.8", "19beta1"], ["18.8 replaces 18.6", "19beta1 is out"]),
        (["17.11", "18.6"], ["17.12", "16.99"], ["17.12 replaces 17.11"]),
        (["19beta1"], ["19beta2", "19rc1"], ["19rc1 replaces 19beta1"]),
        (["19rc1"], ["19.0", "19beta3"], ["19.0 replaces 19rc1"]),
        ([], ["18.6"], []),
    ],
)
def test_what_is_new(named: list[str], published: list[str], news: list[str]) -> None:
    found = [str(new) for new in new_releases(Engine.POSTGRES, named, published)]
    assert found == [f"postgres {line}" for line in news]


RELEASES = st.one_of(
    st.builds("{}.{}".format, st.integers(10, 30), st.integers(0, 30)),
    st.builds("{}{}{}".format, st.integers(10, 30), st.sampled_from(["beta", "rc"]), st.integers(1, 9)),
)


@given(st.sets(RELEASES, min_size=1), st.sets(RELEASES))
def test_what_is_new_is_newer_than_its_line_and_is_new_no_more_when_named(
    named: set[str], published: set[str]
) -> None:
    found = list(new_releases(Engine.POSTGRES, named, published))
    for new in found:
        assert new.release in published - named
        line = [ref for ref in named if release_numbers(ref)[0] == release_numbers(new.release)[0]]
        assert all(release_numbers(ref) < release_numbers(new.release) for ref in line)
        assert bool(line) == bool(new.replaces)
    assert list(new_releases(Engine.POSTGRES, named | {new.release for new in found}, published)) == []


@pytest.mark.parametrize(
    ("follow", "measured", "news"),
    [
        ("", ("18.6",), ["postgres 18.7 replaces 18.6", "postgres 19beta1 is out"]),
        ("minor", ("18.6", "18.7"), ["postgres 19beta1 is out"]),
        ("releases", ("18.6", "18.7", "19beta1"), []),
    ],
)
def test_a_plan_follows_what_it_says_even_while_no_place_answers(
    tmp_path: Path, home: Home, answer: Answer, follow: str, measured: tuple[str, ...], news: list[str]
) -> None:
    words = f'\nfollow = "{follow}"' if follow else ""
    plan = plan_of(tmp_path, f'releases = ["18.6"]{words}')
    answer("18.7", "19beta1", "17.11", "18.6")
    found, said = look_for_releases(plan, home)
    assert (found.engines[Engine.POSTGRES].releases, said) == (measured, news)
    assert with_followed(plan, home) == found
    answer()
    found, said = look_for_releases(plan, home)
    assert found.engines[Engine.POSTGRES].releases == measured
    unknown = "whether postgres has new ones is unknown: git: no network; upstream: no network"
    assert said == [*news, unknown]


@pytest.mark.parametrize("text", ["{", "[]", '{"oracle": []}', '{"postgres": 5}', '{"postgres": [5]}'])
def test_a_damaged_file_is_none(tmp_path: Path, home: Home, text: str) -> None:
    home.path.mkdir()
    (home.path / PUBLISHED).write_text(text)
    plan = plan_of(tmp_path, 'releases = ["18.6"]\nfollow = "minor"')
    assert with_followed(plan, home) == plan


def test_a_release_that_no_place_has_is_refused_if_all_of_them_answered(
    tmp_path: Path, home: Home, answer: Answer
) -> None:
    plan = plan_of(tmp_path, 'releases = ["18.66"]')
    answer("18.5", "18.6", "17.11")
    with pytest.raises(PlanError, match=r"engines\.postgres: there is no release 18\.66") as refused:
        look_for_releases(plan, home)
    assert refused.value.hint == "did you mean 18.6?"
    for silent in ({"problems": ("apt pool: no network",)}, {}):
        answer(*(["18.6"] if silent else []), **silent)
        look_for_releases(plan, home)
    assert look_for_releases(plan_of(tmp_path), home)  # its digest is pinned


def test_the_summary_of_a_night_says_so_and_measures_what_it_follows(
    tmp_path: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setattr(night_module, "run_session", lambda *_: SessionOutcome(uid="x"))
    plan_of(tmp_path, 'releases = ["18.6"]\nfollow = "minor"')
    answer("18.7", "19beta1")
    assert main(["nightly", "--measure", "--plan", str(tmp_path / "plan.toml")]) == 0
    said = capsys.readouterr().out.replace("\\", "")
    assert "2 of 2 versions measured" in said
    assert "Releases: postgres 19beta1 is out." in said
    assert main(["status"]) == 0
    assert "postgres@18.7, write-heavy smoke: " in capsys.readouterr().out


def test_the_plan_takes_prereleases_of_postgres_alone(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 'releases = ["19beta1", "19rc1#twin"]'.replace("#twin", ""))
    assert plan.engines[Engine.POSTGRES].releases == ("19beta1", "19rc1")
    text = (tmp_path / "plan.toml").read_text()
    wrong = {
        "mysql has no releases": text.replace("[engines.postgres]", "[engines.mysql]").replace(
            "postgres@17.11", "mysql@9.7.2"
        ),
        "did you mean postgres?": text.replace("[engines.postgres]", "[engines.postgers]"),
        "'19gamma1' is not a release": text.replace("19rc1", "19gamma1"),
    }
    for message, changed in wrong.items():
        (tmp_path / "plan.toml").write_text(changed)
        with pytest.raises(PlanError, match="(?i)" + message.replace("?", r"\?")):
            load_plan(tmp_path / "plan.toml")
