"""What a plan may say of owners and mutes, and why the rest is refused."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from history.changes.level_shift import Direction
from runners.nightly.keys.mutes import LONGEST_DAYS
from runners.nightly.plan import Plan, PlanError, load_plan
from tests.runners.small_plan import small_plan

TODAY = datetime.now(UTC).date()
MUTE = 'reason = "it is known"\nuntil = 2026-12-31\n'


def loaded(folder: Path, text: str, hostname: str = "host-1") -> Plan:
    file = folder / "plan.toml"
    file.write_text(small_plan(["insert"], "").replace('hostname = "*"', f'hostname = "{hostname}"') + text)
    return load_plan(file)


def test_owners_are_read_with_and_without_the_sign_of_a_mention(tmp_path: Path) -> None:
    one = '[[owners]]\nassignee = "@alice"\nmention = "org/a/b"\n'
    other = '[[owners]]\npaths = ["*.c"]\nmention = ["@c"]\n'
    first, second = loaded(tmp_path, one + other).owner_rules()
    assert (first.assignee, first.mentions, str(first)) == ("alice", ("org/a/b",), "all changes")
    assert (second.assignee, second.mentions, str(second)) == ("", ("c",), "paths *.c")


def test_a_mute_names_boxes_as_the_plan_and_is_applied_to_their_machines(tmp_path: Path) -> None:
    text = f'[[mutes]]\n{MUTE}boxes = ["here"]\ndirection = "worse"\nbelow_percent = 3\n'
    (mute,) = loaded(tmp_path, text).mute_rules()
    assert (mute.boxes, mute.direction) == (("host-1",), Direction.WORSE)
    assert str(mute) == "boxes host-1; direction worse; below 3 %"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[[owners]]\nsuites = ["tpcc"]', "it names nobody"),
        ('[[owners]]\nmention = "a b"', "'a b' is no account or team"),
        ('[[owners]]\nassignee = "org/team"', "owners.0.assignee"),
        ('[[owners]]\nassignee = "a"\npaths = ["!x"]', "'!x': '!' has no meaning in a pattern"),
        (f"[[mutes]]\n{MUTE}", "it has no condition, and would mute everything"),
        ('[[mutes]]\nsuites = ["tpcc"]\nuntil = 2026-12-31', "mutes.0.reason"),
        ('[[mutes]]\nsuites = ["tpcc"]\nreason = "x"', "mutes.0.until"),
        (f'[[mutes]]\n{MUTE}metrics = ["qsp"]', "there is no metric 'qsp'; did you mean qps?"),
        (f'[[mutes]]\n{MUTE}boxes = ["there"]', "there is no box 'there'"),
        (f'[[mutes]]\n{MUTE}direction = "up"', "mutes.0.direction"),
        (
            f'[[mutes]]\n{MUTE}steps = ["a"]\n[[mutes]]\n{MUTE}steps = ["a"]',
            "another mute has the same condit",
        ),
        (
            f'[[mutes]]\nsteps = ["a"]\nreason = "x"\nuntil = {TODAY + timedelta(days=LONGEST_DAYS + 2)}',
            "is more than a year ahead: mute it until",
        ),
    ],
)
def test_what_a_plan_cannot_mean_is_refused_with_the_reason(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(PlanError) as error:
        loaded(tmp_path, text)
    assert why in error.value.what


def test_a_box_that_is_any_machine_cannot_be_muted_by_name(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="box here is any machine; give it a host name"):
        loaded(tmp_path, f'[[mutes]]\n{MUTE}boxes = ["here"]', hostname="*")


def test_a_mute_that_is_over_is_still_read(tmp_path: Path) -> None:
    (mute,) = loaded(tmp_path, '[[mutes]]\nreason = "x"\nuntil = "2020-02-29"\nsteps = ["a"]').mute_rules()
    assert not mute.holds_at(datetime.now(UTC))
