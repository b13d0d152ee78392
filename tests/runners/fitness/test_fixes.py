"""--fix and --restore: whatever was there comes back, however often and however badly it went."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.fitness import memory, processor, profiling
from runners.fitness.fixes import AppliedChanges, SavedSettingsError, fix, plan, restore
from runners.fitness.kernel import chosen
from tests.runners.fitness.fake_kernel import CPU, FakeKernel, a_good_machine

GOVERNOR = f"{CPU}/cpu0/cpufreq/scaling_governor"


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path / "root")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "fitness.json"


def choices(words: list[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(words).map(
        lambda choice: " ".join(f"[{word}]" if word == choice else word for word in words) + "\n"
    )


def numbers(*values: int) -> st.SearchStrategy[str]:
    return st.sampled_from([f"{value}\n" for value in values])


governors = st.sampled_from(["powersave\n", "performance\n", "schedutil\n"])
trees = st.fixed_dictionaries(
    {},
    optional={
        GOVERNOR: governors,
        f"{CPU}/cpu17/cpufreq/scaling_governor": governors,
        processor.NO_TURBO: numbers(0, 1),
        processor.BOOST: numbers(0, 1),
        memory.THP: choices(["always", "madvise", "never"]),
        memory.THP_DEFRAG: choices(["always", "defer", "defer+madvise", "madvise", "never"]),
        memory.SWAPPINESS: numbers(0, 10, 11, 60, 100),
        memory.SWAPS: st.sampled_from(["head\n", "head\n/dev/sda2 partition 9 0 -2\n"]),
        profiling.PARANOID: numbers(-1, 0, 1, 2, 4),
        profiling.POINTERS: numbers(0, 1, 2),
        profiling.NMI_WATCHDOG: numbers(0, 1),
        "/sys/kernel/mm/other": st.just("untouched\n"),
    },
)


def a_machine(root: Path, files: dict[str, str]) -> FakeKernel:
    kernel = FakeKernel(root)
    kernel.root.mkdir(exist_ok=True)
    for name, text in files.items():
        kernel.put(name, text)
    return kernel


@pytest.mark.deep("a whole command in a process of its own")
@given(files=trees)
def test_restore_undoes_fix(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("machine")
    kernel, state = a_machine(folder / "root", files), folder / "fitness.json"
    before = kernel.tree()
    applied = fix(kernel, state)
    assert applied.failures == {}
    assert plan(kernel) == []  # nothing is left to fix
    assert state.exists() == bool(applied.changes) == (kernel.tree() != before)
    assert fix(kernel, state) == AppliedChanges()  # a second one has nothing to do
    assert restore(kernel, state).failures == {}
    assert kernel.tree() == before
    assert not state.exists()


@pytest.mark.deep("a whole command in a process of its own")
@given(files=trees, later=trees)
def test_restore_goes_back_to_the_first_fix(
    files: dict[str, str], later: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Somebody sets things between two --fix: files that the first one changed go back to before it."""
    folder = tmp_path_factory.mktemp("machine")
    kernel, state = a_machine(folder / "root", files), folder / "fitness.json"
    first = {change.name: change.before for change in fix(kernel, state).changes}
    for name, text in later.items():
        if name in files:
            kernel.put(name, text)
    between = {name: kernel.choice(name) for name in files}
    fix(kernel, state)
    assert restore(kernel, state).failures == {}
    wanted = between | first
    assert {name: kernel.choice(name) for name in files} == wanted
    assert not state.exists()


def test_what_is_set(tmp_path: Path, state: Path) -> None:
    kernel = a_good_machine(tmp_path / "root")
    assert plan(kernel) == []
    kernel.governors("powersave", "performance")
    kernel.put(processor.NO_TURBO, "0")
    kernel.put(processor.BOOST, "1")
    kernel.put(memory.THP, "[always] madvise never")
    kernel.put(memory.SWAPS, "head\n/dev/sda2 partition 9 0 -2\n")
    kernel.put(profiling.PARANOID, "4")
    kernel.put(profiling.POINTERS, "2")
    kernel.put(profiling.NMI_WATCHDOG, "1")
    changes = {change.name: (change.before, change.after) for change in fix(kernel, state).changes}
    assert changes == {
        GOVERNOR: ("powersave", "performance"),
        processor.NO_TURBO: ("0", "1"),
        processor.BOOST: ("1", "0"),
        memory.THP: ("always", "madvise"),
        memory.SWAPPINESS: ("60", "1"),
        profiling.PARANOID: ("4", "0"),
        profiling.POINTERS: ("2", "0"),
        profiling.NMI_WATCHDOG: ("1", "0"),
    }
    assert chosen(kernel.path(memory.THP).read_text()) == "madvise"


def test_processors_that_share_a_clock(kernel: FakeKernel, state: Path) -> None:
    """cpu1's file is cpu0's: what is set for the one must not be taken for the other's previous value."""
    kernel.governors("powersave")
    kernel.path(f"{CPU}/cpu1").mkdir()
    kernel.path(f"{CPU}/cpu1/cpufreq").symlink_to("../cpu0/cpufreq")
    fix(kernel, state)
    assert kernel.read(GOVERNOR) == "performance"
    restore(kernel, state)
    assert kernel.read(GOVERNOR) == "powersave"


def test_a_governor_that_is_not_offered_is_left(kernel: FakeKernel, state: Path) -> None:
    kernel.governors("powersave")
    kernel.put(f"{CPU}/cpu0/cpufreq/scaling_available_governors", "powersave schedutil\n")
    assert plan(kernel) == []


class Stubborn(FakeKernel):
    """Refuses some writes, ignores others."""

    refused: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()

    def write(self, name: str, value: str) -> None:
        if name in self.refused:
            raise PermissionError(13, "Permission denied")
        if name not in self.ignored:
            super().write(name, value)


@pytest.fixture
def stubborn(tmp_path: Path) -> Stubborn:
    kernel = Stubborn(tmp_path / "root")
    kernel.governors("powersave")
    kernel.put(processor.NO_TURBO, "0\n")
    kernel.put(profiling.NMI_WATCHDOG, "1\n")
    return kernel


def given_refusals(kernel: Stubborn, refused: set[str], ignored: set[str]) -> None:
    object.__setattr__(kernel, "refused", frozenset(refused))
    object.__setattr__(kernel, "ignored", frozenset(ignored))


def test_what_could_not_be_set_is_said_and_needs_no_way_back(stubborn: Stubborn, state: Path) -> None:
    given_refusals(stubborn, {GOVERNOR}, {processor.NO_TURBO})
    before = stubborn.tree()
    applied = fix(stubborn, state)
    assert applied.failures == {
        GOVERNOR: "cannot be set to performance: permission denied, run it as root",
        processor.NO_TURBO: "was set to 1, but is still 0",
    }
    assert json.loads(state.read_text()) == {profiling.NMI_WATCHDOG: "1"}
    restore(stubborn, state)
    assert stubborn.tree() == before


def test_nothing_could_be_set(stubborn: Stubborn, state: Path) -> None:
    given_refusals(stubborn, {GOVERNOR, processor.NO_TURBO, profiling.NMI_WATCHDOG}, set())
    assert len(fix(stubborn, state).failures) == 3
    assert not state.exists()


def test_what_could_not_be_put_back_can_be_tried_again(stubborn: Stubborn, state: Path) -> None:
    before = stubborn.tree()
    fix(stubborn, state)
    given_refusals(stubborn, {GOVERNOR}, set())
    assert restore(stubborn, state).failures.keys() == {GOVERNOR}
    assert json.loads(state.read_text()) == {GOVERNOR: "powersave"}
    given_refusals(stubborn, set(), set())
    assert restore(stubborn, state).failures == {}
    assert stubborn.tree() == before


def test_a_processor_that_has_gone(stubborn: Stubborn, state: Path) -> None:
    fix(stubborn, state)
    stubborn.path(GOVERNOR).unlink()
    assert restore(stubborn, state).failures == {GOVERNOR: "no longer exists"}
    assert not state.exists()


def test_an_interrupt_in_the_middle_leaves_the_way_back(stubborn: Stubborn, state: Path) -> None:
    before = stubborn.tree()

    class Interrupted(Stubborn):
        def write(self, name: str, value: str) -> None:
            if name == profiling.NMI_WATCHDOG:
                raise KeyboardInterrupt
            super().write(name, value)

    with pytest.raises(KeyboardInterrupt):
        fix(Interrupted(stubborn.root), state)
    assert stubborn.tree() != before
    with pytest.raises(KeyboardInterrupt):  # once more, with less to do: what is known stays known
        fix(Interrupted(stubborn.root), state)
    restore(stubborn, state)
    assert stubborn.tree() == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"/etc/passwd": "root::0:0"}',
        f'{{"{GOVERNOR}": 1}}',
        f'{{"{CPU}/cpu0/../../../../etc/cpufreq/scaling_governor": "x"}}',
    ],
)
def test_a_damaged_file_is_left_alone(stubborn: Stubborn, state: Path, text: str) -> None:
    state.write_text(text)
    before = stubborn.tree()
    for act in (fix, restore):
        with pytest.raises(SavedSettingsError, match="cannot be read"):
            act(stubborn, state)
    assert (state.read_text(), stubborn.tree()) == (text, before)


def test_nothing_is_changed_that_cannot_be_put_back(stubborn: Stubborn, tmp_path: Path) -> None:
    before = stubborn.tree()
    with pytest.raises(SavedSettingsError, match="cannot be saved"):
        fix(stubborn, tmp_path / "missing" / "fitness.json")
    assert stubborn.tree() == before


def test_nothing_to_put_back(kernel: FakeKernel, state: Path) -> None:
    assert restore(kernel, state) == AppliedChanges()


def test_what_is_as_it_was_needs_no_putting_back(kernel: FakeKernel, state: Path) -> None:
    """As after a restart, which undoes what --fix has set."""
    kernel.governors("powersave")
    fix(kernel, state)
    kernel.governors("powersave")
    assert restore(kernel, state) == AppliedChanges()
    assert not state.exists()


def test_a_link_in_place_of_the_saved_settings_is_refused(kernel: FakeKernel, state: Path) -> None:
    elsewhere = state.with_name("elsewhere")
    elsewhere.write_text(json.dumps({memory.SWAPPINESS: "60"}))
    state.symlink_to(elsewhere)
    a_good_machine(kernel.root)
    for act in (fix, restore):
        with pytest.raises(SavedSettingsError, match="symbolic link"):
            act(kernel, state)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_saved_settings_of_another_user_are_refused(kernel: FakeKernel, state: Path) -> None:
    state.write_text(json.dumps({memory.SWAPPINESS: "60"}))
    os.chown(state, 65534, 65534)
    a_good_machine(kernel.root)
    with pytest.raises(SavedSettingsError, match="belongs to the user 65534"):
        restore(kernel, state)
