"""The costs that moved with the commits that a bisect names."""

from collections.abc import Callable

import htpy as h
import pytest

from report.pages.bisect import bisect_page
from report.values.clearance import Clearance
from runners.bisect.report.costs import changed_costs
from runners.bisect.report.render import markdown, text
from runners.bisect.report.state import export, load_state
from runners.reporting.bisects import bisect_values
from tests.runners.bisect.conftest import Line, asked
from tests.runners.bisect.stand import Stand

Made = Callable[..., Stand]

CPU, SWITCHES = "server_cpu_us_per_op", "server_cs_per_op"


@pytest.mark.deep("searches that are simulated many times")
@pytest.mark.parametrize("steps", [((11, 0.7),), ((5, 0.7), (12, 0.8))])
def test_each_commit_has_the_costs_that_moved_with_it_alone(
    stand: Made, line: Line, steps: tuple[tuple[int, float], ...]
) -> None:
    machine = stand(*steps, metrics={SWITCHES: 3.0})
    costs = changed_costs(machine.store, machine.bisect(asked(line), whole=True))
    assert {place: [cost.metric for cost in moved] for place, moved in costs.items()} == {
        place: [CPU] for place, _ in steps
    }
    for place, size in steps:
        (moved,) = costs[place]
        assert moved.interval is not None
        assert moved.interval.low < 1 / size < moved.interval.high
        assert moved.interval.high / moved.interval.low < 1.05, "another change would be 1.25 times as much"


def test_they_are_told_in_words_and_on_the_page(stand: Made, line: Line) -> None:
    machine = stand((11, 0.7))
    state = load_state(machine.store, machine.bisect(asked(line)))
    (row,) = [line for line in text(state).splitlines() if "server CPU" in line]
    assert row.split()[:3] == ["server", "CPU", "µs/query"]
    assert float(row.split()[5]) == pytest.approx(1 / 0.7, abs=0.03)
    assert "**Costs that moved with culprit**" in markdown(state)
    (exported,) = export(state)["costs"][state.point(11).version].values()
    assert exported["ratio"] == pytest.approx(float(row.split()[5]), abs=0.01)
    shown = str(h.div[bisect_page(bisect_values(state), Clearance()).body])
    assert f"Costs that moved with {state.point(11).short}" in shown


def test_nothing_is_told_without_a_culprit(stand: Made, line: Line) -> None:
    machine = stand()
    assert changed_costs(machine.store, machine.bisect(asked(line))) == {}
