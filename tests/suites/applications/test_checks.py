"""The checks of a suite.toml: what they ask, and when. No server."""

import pytest
from pydantic import ValidationError

from build.version import Engine
from suites.definition import load_suite
from suites.keys.check import CheckOccasion, DataCheck

SQL = "SELECT COUNT(*) - {rows:users} - {committed:pay} FROM users"


def test_sql_is_given_the_numbers_of_the_session() -> None:
    check = DataCheck(name="users", title="all are there", sql=SQL, on=(CheckOccasion.STEP,))
    assert check.text({"pay": 7}, {"users": 100}) == "SELECT COUNT(*) - 100 - 7 FROM users"
    assert check.text({}, {"users": 100}).endswith("- 0 FROM users")


@pytest.mark.parametrize("on", [(), (CheckOccasion.STEP, CheckOccasion.CRASH), (CheckOccasion.LOADED,)])
def test_what_clients_committed_is_known_after_a_step_only(on: tuple[CheckOccasion, ...]) -> None:
    with pytest.raises(ValidationError, match=r"needs on = \[\"step\"\]"):
        DataCheck(name="users", title="all are there", sql=SQL, on=on)


def test_a_check_is_asked_where_it_applies() -> None:
    check = DataCheck(
        name="sums",
        title="sums agree",
        sql="SELECT 0",
        on=(CheckOccasion.STEP,),
        engines=(Engine.POSTGRES,),
        steps=("pay",),
        profiles=("smoke",),
    )
    assert check.applies(CheckOccasion.STEP, Engine.POSTGRES, "smoke", "pay")
    assert not check.applies(CheckOccasion.LOADED, Engine.POSTGRES, "smoke")
    assert not check.applies(CheckOccasion.STEP, Engine.MYSQL, "smoke", "pay")
    assert not check.applies(CheckOccasion.STEP, Engine.POSTGRES, "long", "pay")
    assert not check.applies(CheckOccasion.STEP, Engine.POSTGRES, "smoke", "keep")


def test_every_check_of_a_suite_is_asked_on_some_step() -> None:
    for name in ("payments", "shop"):
        suite = load_suite(name)
        for check in suite.checks:
            steps = [step.plain_name for step in suite.select((), "smoke")]
            asked = [check.applies(CheckOccasion.STEP, Engine.MYSQL, "smoke", step) for step in steps]
            assert any(asked), check.name


def test_steps_at_a_rate_belong_to_the_long_profile() -> None:
    for name in ("payments", "shop"):
        suite = load_suite(name)
        assert not any(step.is_open for step in suite.select((), "short"))
        assert any(step.is_open for step in suite.select((), "long"))
