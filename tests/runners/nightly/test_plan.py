"""Plans: read, and refused with file, key and reason."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.home import ROOT
from build.version import Engine
from runners.nightly.plan import PlanError, find_box, load_plan

PLANS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "runners/examples").rglob("*.toml"))

WHOLE = """
[boxes.one]
label = "tidemark-one"
[boxes.two]
label = "tidemark-two"
hostname = "db2.example.org"
[engines.postgres]
base = "postgres@17.11"
releases = ["18.6"]
branches = ["master"]
[[tasks]]
suite = "write-heavy"
profile = "long"
[[tasks]]
suite = "pgbench"
profile = "smoke"
priority = 1
boxes = ["two"]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["runners/nightly.toml", *PLANS])
def test_our_own_plans_are_plans(name: str) -> None:
    assert load_plan(ROOT / name).tasks


def test_tasks_by_priority_and_box(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, WHOLE))
    assert [task.suite for task in plan.tasks_of("one")] == ["write-heavy"]
    assert [task.suite for task in plan.tasks_of("two")] == ["pgbench", "write-heavy"]
    assert plan.engines_of(plan.tasks[0]) == [Engine.POSTGRES]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("label = \"tidemark-two\"", "label = \"tidemark-one\""), "two boxes have the label tidemark-one"),
        (("label = \"tidemark-two\"", "label = \"$(touch x)\""), "boxes.two.label: String should match"),
        (("[boxes.two]", "[boxes.\"a b\"]"), "boxes.a b"),
        (("base = \"postgres@17.11\"", "base = \"postgres@master\""), "base: postgres@master is no"),
        (("base = \"postgres@17.11\"", "base = \"17.11\""), "base: '17.11' is not a version"),
        (("base = \"postgres@17.11\"", "base = \"mysql@9.7.2\""), "mysql@9.7.2 is not a release of postgres"),
        (("label = \"tidemark-two\"", "label = \"tidemark-two\"\npool = \"a\""), "two.pool: boxes share"),
        (("[boxes.two]", "[pools.p]\nconfirm = \"other\"\n[boxes.two]"), "pools: boxes share no tasks"),
        (("\"18.6\"", "\"17.11\""), "engines.postgres.releases: 17.11 is the base already"),
        (("\"18.6\"", "\"18.6\", \"18.6\""), "releases: an entry is listed twice"),
        (("\"18.6\"", "\"master\""), "'master' is not a release; name branches under `branches`"),
        (("\"master\"", "\"$(touch x)\""), "engines.postgres.branches: '$(touch x)' is not a valid branch"),
        (("\"master\"", "\"../x\""), "'../x' is not a valid branch name"),
        (("[engines.postgres]", "[engines.oracle]"), "engines.oracle"),
        (("base = \"postgres@17.11\"", "base = \"postgres@a=b\""), "base: 'a=b' in 'postgres@a=b' is no"),
        (("branches = [", "installs = [\"mine\"]\nbranches = ["), "installs: 'mine' is not NAME=/PATH"),
        (("branches = [", "installs = [\"m=/a\", \"m=/b\"]\nbranches = ["), "installs: an entry is listed"),
        (("branches = [", "installs = [\"master=/a\"]\nbranches = ["), "installs: master is a branch, too"),
        (("branches = [", "installs = [\"m=/a#o3\"]\nbranches = ["), "installs: m=/a#o3: no [variants.o3]"),
        (("[[tasks]]", "git = \"https://me:hush@a.org/x\"\n[[tasks]]"), "engines.postgres.git: it holds"),
        (("suite = \"pgbench\"", "suite = \"../pgbench\""), "tasks.1.suite: String should match"),
        (("suite = \"pgbench\"", "suite = \"nonsense\""), "tasks.1.suite: there is no suite"),
        (("profile = \"smoke\"", "profile = \"tiny\""), "tasks.1.profile: pgbench has "),
        (("boxes = [\"two\"]", "boxes = [\"three\"]"), "tasks.1.boxes: there is no box 'three'"),
        (("boxes = [\"two\"]", "steps = [\"nothing\"]"), "tasks.1.steps: pgbench has no step 'nothing'"),
        (("boxes = [\"two\"]", "engines = [\"mysql\"]"), "tasks.1.engines: mysql is not tracked"),
        (("priority = 1", "prioritty = 1"), "tasks.1.prioritty: Extra inputs are not permitted"),
        (("priority = 1", "priority = \"1\""), "tasks.1.priority: Input should be a valid integer"),
        (("priority = 1", "confirm_layouts = 2"), "tasks.1.confirm_layouts: Input should be greater than or"),
        (("[[tasks]]", "history = 1\n[[tasks]]"), "engines.postgres.history: Extra inputs"),
        (("\"18.6\"", "\"18.6#o3\""), "postgres.releases: 18.6#o3: no [variants.o3]; there are: none"),
        (("[boxes.one]", "[variants.o3]\n[boxes.one]"), "variants.o3: it has none of: settings, build"),
        (("[boxes.one]", "[variants.a.settings]\njit = 1\n[boxes.one]"), "variants.a.settings.jit: Input"),
        (("[boxes.one]", "[variants.a]\nindex = [\"t*(c)\"]\n[boxes.one]"), "variants.a.index: Extra inputs"),
        (("[boxes.one]", "[variants.a]\ncompanions = [\"x\"]\n[boxes.one]"), "there is no companion 'x'"),
        (("[boxes.one]", "[variants.o3.build]\nCC = \"$(x)\"\n[boxes.one]"), "build.CC: '$(x)' can"),
        (("[boxes.one]", "[boxes.one"), "not TOML"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_key_and_reason(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    assert change[0] in WHOLE
    path = written(tmp_path, WHOLE.replace(*change))
    with pytest.raises(PlanError) as caught:
        load_plan(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="No such file"):
        load_plan(tmp_path / "nothing.toml")


def test_which_box_this_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load_plan(written(tmp_path, WHOLE))
    monkeypatch.delenv("TIDEMARK_BOX", raising=False)
    assert find_box(plan, "one", "anything") == "one"
    assert find_box(plan, None, "one") == "one"
    assert find_box(plan, None, "db2.example.org") == "two"
    monkeypatch.setenv("TIDEMARK_BOX", "two")
    assert find_box(plan, None, "one") == "two"
    assert find_box(plan, "one", "two") == "one"
    monkeypatch.delenv("TIDEMARK_BOX")
    with pytest.raises(PlanError, match="no box of the plan has the host name db3"):
        find_box(plan, None, "db3")
    assert find_box(load_plan(ROOT / "runners/examples/demo.toml"), None, "db3") == "demo"


@given(st.text(max_size=40))
def test_a_box_that_is_not_in_the_plan_is_refused_whatever_it_says(text: str) -> None:
    plan = load_plan(ROOT / "runners/nightly.toml")
    if text not in plan.boxes:
        with pytest.raises(PlanError):
            find_box(plan, text, "box1")


def test_a_password_in_an_address_is_not_repeated(tmp_path: Path) -> None:
    address = 'git = "https://me:hush@example.org/x"\n[[tasks]]'
    with pytest.raises(PlanError) as refused:
        load_plan(written(tmp_path, WHOLE.replace("[[tasks]]", address, 1)))
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("value", ["1e12", "nan", "inf", "9" * 5000, "[" * 5000])
def test_a_budget_without_measure_is_refused(tmp_path: Path, value: str) -> None:
    text = f'[boxes.here]\nlabel = "here"\nbudget_minutes = {value}\n'
    with pytest.raises(PlanError):
        load_plan(written(tmp_path, text))
