"""Plans that are made of answers: what is asked, what stands in for it, and what `load_plan` says of them."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.home import Home
from build.version import Engine
from runners.alerting.notices.routes import Route
from runners.initializing import found
from runners.initializing.answers import Answers, interview
from runners.initializing.interview import InitError, Interview
from runners.initializing.plan_text import plan_text
from runners.nightly.plan import Plan, load_plan

BOX = {"--box": ["db1"]}
SOURCE = {"--git": ["/srv/git/source"]}


def answered(folder: Path, given: Mapping[str, Sequence[str]], ask: Callable[[str], str] | None) -> Answers:
    return interview(Interview(given, ask is None, ask, lambda line: None), Home(folder), folder)


def loaded(answers: Answers) -> Plan:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.toml"
        path.write_text(plan_text(answers), encoding="utf-8")
        return load_plan(path)


def test_defaults_make_a_plan(tmp_path: Path) -> None:
    plan = loaded(answered(tmp_path, BOX, None))
    assert [task.suite for task in plan.tasks] == ["write-heavy"]
    (engine,) = plan.engines
    tracked = plan.engines[engine]
    assert (engine, tracked.base, tracked.releases) == (Engine.POSTGRES, "postgres@17.11", ("18.6",))
    assert tracked.branches == ("master",)
    assert plan.boxes["db1"].budget_minutes == 480
    assert (plan.alerts.repository, plan.notify) == (None, ())


def test_a_plan_with_everything(tmp_path: Path) -> None:
    routes = ["team", "mail=mailto://localhost?from=a@example.org&to=b@example.org"]
    given = {
        **BOX,
        "--base": ["postgres@17.11", "mysql@9.7.2"],
        "--branch": ["postgres@master", "postgres@REL_18_STABLE", "mysql@trunk"],
        "--git": ["mysql=/srv/git/mysql", "postgres=https://git.example.org/postgres.git"],
        "--issues": ["https://git.example.org/forge/databases/performance.git"],
        "--tracker": ["gitea"],
        "--notify": routes,
        "--suite": ["write-heavy,read"],
        "--profile": ["smoke"],
    }
    plan = loaded(answered(tmp_path, given, None))
    assert plan.engines[Engine.POSTGRES].branches == ("master", "REL_18_STABLE")
    assert plan.engines[Engine.MYSQL].git == "/srv/git/mysql"
    assert plan.engines[Engine.MYSQL].releases == ()
    assert [(task.suite, task.profile) for task in plan.tasks] == [
        ("write-heavy", "smoke"),
        ("read", "smoke"),
    ]
    alerts = plan.alerts
    assert (alerts.tracker, alerts.url, alerts.repository) == (
        "gitea",
        "https://git.example.org/forge",
        "databases/performance",
    )
    assert [(route.name, route.needs_credential) for route in plan.notify] == [
        ("team", True),
        ("mail", False),
    ]


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://github.com/owner/name", ("github", None, "owner/name")),
        ("https://gitlab.com/group/below/name.git", ("gitlab", None, "group/below/name")),
        ("https://gitlab.example.org/group/name", ("gitlab", "https://gitlab.example.org", "group/name")),
        ("https://codeberg.org/owner/name/", ("gitea", "https://codeberg.org", "owner/name")),
    ],
)
def test_the_address_of_a_repository_says_its_tracker(
    address: str, told: tuple[str, str | None, str], tmp_path: Path
) -> None:
    alerts = loaded(answered(tmp_path, {**BOX, "--issues": [address]}, None)).alerts
    assert (alerts.tracker, alerts.url, alerts.repository) == told


def test_all_that_is_refused_is_told_at_once(tmp_path: Path) -> None:
    given = {
        "--box": ["db 1"],
        "--base": ["postgres@master"],
        "--release": ["mysql@9.7.2"],
        "--branch": ["postgres@18.6"],
        "--git": ["https://me:secret@git.example.org/x.git"],
        "--suite": ["write-hevy"],
        "--budget": ["-1"],
        "--issues": ["example.org"],
        "--notify": ["team=json://me:secret@localhost"],
    }
    with pytest.raises(InitError) as refused:
        answered(tmp_path, given, None)
    told = str(refused.value)
    assert all(f"    {option} " in told for option in given)
    assert "did you mean write-heavy?" in told
    assert "url holds a secret, which is not for a plan" in told
    assert "me:secret" not in told


def test_all_that_is_missing_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "box_name", lambda: None)
    given = {"--issues": ["https://tracker.example.org/owner/name"], "--profile": ["smoke"]}
    asked = Interview(given, takes_defaults=False, ask=None)
    with pytest.raises(InitError) as refused:
        interview(asked, Home(tmp_path), tmp_path)
    told = str(refused.value)
    assert "    --box: name of this box, such as box1\n" in told
    assert "    --base: release to compare with (default: postgres@17.11)\n" in told
    assert "    --tracker: what runs at tracker.example.org, such as " in told
    assert "--yes takes the defaults" in told
    assert "--issues" not in told
    assert "--profile" not in told
    # With --yes, only that for which there is no default.
    with pytest.raises(InitError) as refused:
        answered(tmp_path, given, None)
    assert sorted(line.split(":")[0].strip() for line in str(refused.value).splitlines()[1:3]) == [
        "--box",
        "--tracker",
    ]


class Terminal:
    """Types lines, and keeps what was asked."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines: Iterator[str] = iter(lines)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return next(self.lines)


def test_a_terminal_is_asked_until_the_answer_can_be_used(tmp_path: Path) -> None:
    typed = ["db 1", "db1", "", "none", "", "", "", "smoke", "", "https://github.com/owner/name", "team"]
    terminal = Terminal([f"{line}\n" for line in typed])
    plan = loaded(answered(tmp_path, {}, terminal))
    assert list(plan.boxes) == ["db1"]
    assert plan.engines[Engine.POSTGRES].releases == ()
    assert plan.tasks[0].profile == "smoke"
    assert plan.alerts.repository == "owner/name"
    assert [route.name for route in plan.notify] == ["team"]
    assert terminal.prompts[0] == terminal.prompts[1]
    assert "release to compare with [postgres@17.11]: " in terminal.prompts


@cache
def made() -> Answers:
    return answered(Path("/"), {**BOX, "--profile": ["smoke"]}, None)


@pytest.mark.deep("sets up a box in namespaces")
@given(
    box=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", fullmatch=True),
    hostname=st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
    budget=st.floats(0.1, 1000),
    route=st.from_regex(r"[a-z][a-z0-9-]{0,31}", fullmatch=True),
)
def test_any_answer_is_in_the_plan(box: str, hostname: str | None, budget: float, route: str) -> None:
    routes = (Route(name=route),)
    plan = loaded(replace(made(), box=box, hostname=hostname, budget_minutes=budget, routes=routes))
    assert (plan.boxes[box].hostname, plan.boxes[box].budget_minutes) == (hostname, budget)
    assert plan.notify == routes
