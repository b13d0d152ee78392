"""Command lines that measure something again, from what the history stores about it.

What is printed is a whole block for a shell: comments say what is not stored and has to be added by hand, and
where no command would be accepted, a comment says why instead.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from build.errors import TidemarkError, shell_line
from build.version import Version
from history.changes.level_shift import Course, Direction, direction_between
from history.comparison.beside.curves import LEVELS
from history.errors import stored_version
from history.escaping.characters import one_line
from history.series.variants import TWIN, VARIANTS, definition_in
from history.stats.estimators import MINIMUM_REPETITIONS
from history.store.records import EXACT, HELD, LAYOUTS, ONLY, ChangeStatus, Session
from suites.additions.variant import EXTENSIONS, option_words
from suites.keys.levels import LEVEL
from suites.layers.choice import LayerName
from suites.metrics import METRICS, PRIMARY, CountedBy

if TYPE_CHECKING:
    from history.changes.report import ChangeReport
    from history.comparison.result import ContenderComparison
    from suites.definition import Suite
    from suites.keys.profile import Profile

DECIDED = ("--until-decided",)
COUNTED = ("--exact-only",)
SAMPLED = ("--perf",)

_SEARCHED = {
    Direction.WORSE: [],
    Direction.BETTER: ["--direction", "better"],
    Direction.SHIFT: ["--direction", "either"],
}
_DIGITS = 12
"""The hex digits of a commit."""

COUNTED_ALONE = (ONLY, "driven")
"""The values of `when` in sessions that only counted."""


class _NoCommandError(TidemarkError):
    """No command line asks for what was stored."""


def run_again(
    session: Session,
    versions: Sequence[str] = (),
    steps: Sequence[str] = (),
    how: Sequence[str] | None = None,
) -> list[str]:
    """Return lines for a shell that measure what a session measured: comments, then the command.

    `versions` and `steps` are those to measure, by default all of the session; `steps` are named as in its
    runs. `how` replaces the stored number of rounds, counting and sampling: DECIDED, COUNTED or SAMPLED.
    """
    names = list(versions) or _stored_versions(session)
    try:
        words = _words(session, tuple(map(stored_version, dict.fromkeys(names))), steps, how)
    except TidemarkError as error:
        return [f"# No command measures this again: {one_line(error.what)}."]
    return [*_notes(session, names), quoted(words)]


def as_released(contender: "ContenderComparison") -> list[str]:
    """Return lines for a shell that measure a pair again, with the settings that its releases have.

    Empty for variants, which have what their definitions say.
    """
    pair = (contender.base, contender.contender)
    if any(version.variant for version in pair):
        return []
    names, variants = [], {}
    for number, version in enumerate(pair, start=1):
        others = [other for other in contender.other_settings if other.version == version]
        variants[f"released{number}"] = {"settings": {other.name: other.released for other in others}}
        names.append(f"{version}#released{number}" if others else str(version))
    session = replace(contender.session, options={**contender.session.options, VARIANTS: variants})
    return run_again(session, names, [step.step for step in contender.steps])


def calibrate_again(contender: "ContenderComparison") -> list[str]:
    """Return lines for a shell that measure the noise of the steps of a comparison, with its base."""
    session, base = contender.session, contender.base
    try:
        suite, profile = _suite_of(session)
        words = ["./tidemark", "calibrate", "--suite", session.suite, "--profile", session.profile]
        words += _steps(session, suite, [step.step for step in contender.steps], calibrates=True)
        words += session.declared.arguments(profile.declared)
        words += _defined(session, (base,))
    except TidemarkError as error:
        return [f"# No command measures its noise: {one_line(error.what)}."]
    return [*_notes(session, [str(base)]), quoted([*words, str(base)])]


def change_again(report: "ChangeReport") -> list[str]:
    """Return lines for a shell that measure the versions before and after a change, and compare them."""
    change, member = report.change, report.main_series
    names, step = [change.last_before.version, change.first_after.version], member.key.step
    if len({*names}) == 1:
        return [f"# Both nights measured {one_line(names[0])}: there are no two versions to compare."]
    is_counted = METRICS[member.key.metric].is_counted
    words = ["./compare.py", *names, "--suite", report.session.suite, "--profile", report.session.profile]
    words += ["--step", step, *(["--metric", member.key.metric] if is_counted else ["--costs"])]
    return [*run_again(report.session, names, [step], COUNTED if is_counted else DECIDED), quoted(words)]


WITHOUT_COMMIT = {
    Course.DRIFT: (
        "No bisect is offered: the series moved gradually, and no single commit made the difference.",
        "Measure versions of both ends side by side.",
        "If they do not differ, the machine, its data or the base has changed.",
        "If they do, measure versions in between to see which part of the time brought most of it.",
    ),
    Course.ALTERNATION: (
        "No bisect is offered: the series switches between two levels, which no single commit explains.",
        "Look for what differs between nights at the two levels: the layout of the program in memory",
        "(--layouts measures how much that is), the kernel, the plan of a query, other work on the machine.",
    ),
}
"""Why no bisect is offered for a change that is no step, and what to do instead."""


def change_search(report: "ChangeReport") -> list[str]:
    """Return lines for a shell that search for the commit behind a change; none within one version.

    A comment says what to do about a change that is no step.
    """
    if report.course in WITHOUT_COMMIT:
        return [f"# {sentence}" for sentence in WITHOUT_COMMIT[report.course]]
    change, member, session = report.change, report.main_series, report.session
    old, new = (stored_version(night.version) for night in (change.last_before, change.first_after))
    definition = definition_in(session.options, new.variant)
    extension = _followed(definition, old, new)
    if old.variant != new.variant and not extension:
        return [f"# No command searches for it: {one_line(str(new))} differs in more than one repository."]
    if METRICS[member.key.metric].counted_by is CountedBy.PROOF:
        return [f"# No command searches by {member.key.metric}: try --metric wal-per-op."]
    try:
        defined = _defined(session, () if extension else (new,))
        if extension:
            others = {key: value for key, value in definition.items() if key != EXTENSIONS}
            defined += defining_words("", others)
    except TidemarkError as error:
        return [f"# No command searches for it: {one_line(error.what)}."]
    if extension:
        good, bad = (version.variant.rpartition("-")[2] for version in (old, new))
        words = ["./tidemark", "bisect", "--server", str(new.plain), "--extension", extension]
    else:
        good, bad = map(_ref, (old, new), report.commits)
        words = ["./tidemark", "bisect", "--engine", new.engine]
    words += [
        "--good",
        good,
        "--bad",
        bad,
        "--suite",
        session.suite,
        "--profile",
        session.profile,
        "--step",
        member.key.step,
    ]
    words += [] if member.key.metric == PRIMARY else ["--metric", member.key.metric]
    words += _SEARCHED[direction_between(member.key.metric, 1, member.ratio)]
    words += session.declared.arguments()
    return [] if good == bad else [*_notes(session, [str(new)]), quoted([*words, *defined])]


def _followed(definition: Mapping[str, Any], old: Version, new: Version) -> str:
    """Return the extension, `NAME=REPO`, whose branch nights followed on one server; empty for any other.

    A night calls its variant by the name in the plan and the commit: `vec-5bf748b86b12`.
    """
    made = definition.get(EXTENSIONS)
    (name, dash, commit), (before, _, _) = (version.variant.rpartition("-") for version in (new, old))
    if not (dash and name == before and old.plain == new.plain and isinstance(made, list) and len(made) == 1):
        return ""
    is_of_night = str(made[0].get("commit", made[0].get("ref"))).startswith(commit)
    return f"{made[0].get('name')}={made[0].get('repository')}" if is_of_night else ""


def change_decision(report: "ChangeReport") -> list[str]:
    """Return lines for a shell that acknowledge an open change, or take that back; none for a closed one.

    The reason in it has to be replaced by one's own.
    """
    words = ["./tidemark", "history", "acknowledge", report.change.fingerprint]
    decided = {
        ChangeStatus.OPEN: ["--reason", "why it is accepted"],
        ChangeStatus.ACKNOWLEDGED: ["--undo", "--reason", "why it is not accepted"],
    }
    status = report.change.status
    return [quoted([*words, *decided[status]])] if status in decided else []


def patch_notes(definition: Mapping[str, Any]) -> list[str]:
    """Return the comment on patches, of which the history knows the names of the files."""
    patches = definition.get("patches")
    names = ", ".join(one_line(str(patch)) for patch in patches) if isinstance(patches, list) else ""
    return [f"# Start it in the folder with {names}, as the history does not keep patches."] if names else []


def defining_words(name: str, definition: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that define a variant; an empty name is what every version gets.

    Raises TidemarkError for a layer that an older Tidemark measured.
    """
    layers = definition.get("layers")
    for layer, value in layers.items() if isinstance(layers, dict) else ():
        if layer not in set(LayerName):
            raise _NoCommandError(f"the layer {layer}={value} is no longer measured")
    return option_words(name, definition)


def said(notes: Sequence[str], mark: str = "; ") -> str:
    """Return the comments of a command as the rest of a sentence, each after a mark."""
    said = [note.removeprefix("# ").rstrip(".") for note in notes]
    return "".join(f"{mark}{note[:1].lower()}{note[1:]}" for note in said)


def quoted(words: Sequence[str]) -> str:
    """Return words for a shell, as one line that cannot end the block in which it stands."""
    return shell_line(*(one_line(str(word)).replace("`", "'") for word in words))


def _stored_versions(session: Session) -> list[str]:
    versions = session.options.get("versions")
    return list(map(str, versions)) if isinstance(versions, list) else []


def _notes(session: Session, names: Sequence[str]) -> Iterator[str]:
    versions = [stored_version(name) for name in names]
    for name in dict.fromkeys(version.variant for version in versions):
        yield from patch_notes(definition_in(session.options, name))
    compiled = [version for version in versions if not (version.is_release or version.is_install)]
    if compiled:
        yield "# Commits that are not upstream's: add --git with their repository."


def _defined(session: Session, versions: Sequence[Version]) -> list[str]:
    """Return the options that define what every version got, and the variants among `versions`."""
    options = session.options
    if options.get("patches"):
        raise _NoCommandError("the history keeps no patch of every version")
    words = defining_words("", options)
    for name in dict.fromkeys(version.variant for version in versions):
        definition = definition_in(options, name)
        if name not in ("", TWIN) and not definition:
            raise _NoCommandError(f"how #{name} is defined is not stored")
        words += defining_words(name, definition) if name else []
    return words


def _words(
    session: Session, versions: tuple[Version, ...], steps: Sequence[str], how: Sequence[str] | None
) -> list[str]:
    """Return the words of the command. Raises TidemarkError if none would do what was stored."""
    if session.is_imported:
        raise _NoCommandError("it was imported")
    if not versions:
        raise _NoCommandError("its versions are not stored")
    suite, profile = _suite_of(session)
    calibrates = how is None and _is_calibration(session, versions, profile)
    words = ["./tidemark", "calibrate" if calibrates else "run"]
    words += ["--suite", session.suite, "--profile", session.profile]
    words += _steps(session, suite, steps, calibrates)
    words += session.declared.arguments(profile.declared)
    words += _defined(session, versions[:1] if calibrates else versions)
    if calibrates:
        return [*words, "--rounds", str(session.repetitions), str(versions[0])]
    words += _durations(session, profile, how)
    words += _rounds(session, profile) if how is None else _chosen(session, how, len(versions))
    words += ["--durability", session.durability] if session.durability != "relaxed" else []
    words += ["--alone"] if len(versions) == 1 else []
    return words + [str(version) for version in versions]


def _suite_of(session: Session) -> "tuple[Suite, Profile]":
    from suites.definition import load_suite, own_suites, suite_names  # loaded only where a command is shown

    if session.suite not in {*suite_names(), *own_suites()}:
        raise _NoCommandError(f"the suite {session.suite} is in a folder of its own, which is not stored")
    suite = load_suite(session.suite)
    return suite, suite.profile(session.profile)


def _is_calibration(session: Session, versions: Sequence[Version], profile: "Profile") -> bool:
    """Return whether `calibrate` measures the same: a version and its twin, as the profile has it."""
    if len(versions) != 2 or session.repetitions < MINIMUM_REPETITIONS:
        return False
    version, twin = versions
    name = f"{version.variant}-{TWIN}" if version.variant else TWIN
    others = (EXACT, "perf", LAYOUTS, "bisect")
    is_plain = session.durability == "relaxed" and not any(session.options.get(other) for other in others)
    as_profile = not _durations(session, profile) and not _is_until_decided(session)
    return twin == replace(version, variant=name) and is_plain and as_profile


def _durations(session: Session, profile: "Profile", how: Sequence[str] | None = None) -> list[str]:
    options, words = session.options, []
    # A counted pass starts from the loaded data, which long mode does not keep.
    mode = "rounds" if how is not None and tuple(how) == COUNTED else options.get("mode", profile.mode)
    if mode != profile.mode:
        words += ["--mode", str(mode)]
    if options.get("seconds", profile.seconds) != profile.seconds:
        words += ["--seconds", f"{options['seconds']:.12g}"]
    return words


def _rounds(session: Session, profile: "Profile") -> list[str]:
    """Return the options with the number of rounds, counted passes and samples as they are stored."""
    exact, perf = session.options.get(EXACT), session.options.get("perf")
    counts = str(exact.get("when")) if isinstance(exact, dict) else ""
    layouts = ["--layouts", str(session.layouts)] if session.layouts else []
    if counts in COUNTED_ALONE:
        return [*COUNTED, "--repetitions", str(session.repetitions)]
    decided = _is_until_decided(session)
    usual = _usual_rounds(session, profile, decided=decided)
    words = [*(DECIDED if decided else ()), *layouts]
    words += ["--repetitions", str(session.repetitions)] if session.repetitions != usual else []
    words += ["--no-exact"] if profile.counted_passes and not counts else []
    if isinstance(perf, dict):
        words.append("--perf-during" if perf.get("when") == "during" else "--perf")
    return words


def _usual_rounds(session: Session, profile: "Profile", *, decided: bool) -> int:
    """Return the rounds that need no option; in long mode the blocks that the seconds hold."""
    if session.is_long and not decided:
        seconds = session.options.get("seconds", profile.seconds)
        return profile.model_copy(update={"seconds": seconds}).blocks
    return max(profile.repetitions, session.layouts, MINIMUM_REPETITIONS if decided else 1)


def _chosen(session: Session, how: Sequence[str], versions: int) -> list[str]:
    """Return `how` without what would be refused, and the layouts if rounds are measured."""
    if tuple(how) == COUNTED:
        return list(how)
    layouts = ["--layouts", str(session.layouts)] if session.layouts else []
    return [*(() if tuple(how) == DECIDED and versions == 1 else how), *layouts]


def _is_until_decided(session: Session) -> bool:
    rounds = session.options.get("rounds")
    return isinstance(rounds, dict) and rounds.get("until_decided") is True


def _steps(session: Session, suite: "Suite", names: Sequence[str], calibrates: bool) -> list[str]:
    """Return the options that select steps and levels of clients, the shortest that select the same.

    Raises _NoCommandError if the suite does not have them any more.
    """
    held = _held(session)
    wanted = {name: held.get(name, ()) for name in names or [*_levels(session), *held]}
    if not wanted:
        return []
    plain = list(dict.fromkeys(name.partition(LEVEL)[0] for name in wanted))
    levels = sorted({int(level) for name in wanted if (level := name.partition(LEVEL)[2]).isdecimal()})
    clients = tuple(levels) or next((held[name] for name in wanted if name in held), ())
    for chosen, several in (((), ()), ((), clients), (plain, ()), (plain, clients), (list(wanted), ())):
        try:
            steps = suite.select(tuple(chosen), session.profile, several)
        except TidemarkError:
            continue
        kept = [step for step in steps if not (calibrates and step.is_open)]
        if {step.name: step.clients if step.level is None else () for step in kept} == wanted:
            words = [word for name in chosen for word in ("--step", name)]
            return words + (["--clients", ",".join(map(str, several))] if several else [])
    raise _NoCommandError(f"the suite {session.suite} has other steps now, or other levels of clients")


def _levels(session: Session) -> list[str]:
    levels = session.options.get(LEVELS)
    return list(map(str, levels)) if isinstance(levels, dict) else []


def _held(session: Session) -> dict[str, tuple[int, ...]]:
    held = session.options.get(HELD)
    return {str(step): tuple(clients) for step, clients in held.items()} if isinstance(held, dict) else {}


def _ref(version: Version, commit: str | None) -> str:
    return (commit[:_DIGITS] if commit else version.ref) + (f"#{version.variant}" if version.variant else "")
