"""`./tidemark try`: a branch or a patch against its merge base, and an answer for a reviewer."""

import argparse
from pathlib import Path

from build.addresses import redacted
from build.errors import TidemarkError, shell_line
from build.extension import EXTENSIBLE
from build.home import Home, locate_for_writing
from build.progress import Progress
from build.sources.repository import git_address
from build.version import Engine
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison
from history.comparison.verdict import Verdict
from history.escaping.markdown import md
from history.open import open_store
from history.rendering.next_step.closing import LOADING_MINUTES, closing, command, located, with_budget
from history.series.round_seconds import session_seconds
from history.store.writer import Store
from history.timestamps import now
from report.writing.alone import tried_alone
from runners.console import add_to_job_summary, progress, set_job_output
from runners.measuring.layouts import require_layouts
from runners.measuring.session import SessionOutcome
from runners.measuring.variants import EVERY, read_variants
from runners.nightly.inputs import TryInputs, box_for_try
from runners.nightly.plan import Box, load_plan
from runners.occupancy.busy import note_if_busy
from runners.occupancy.pause import require_not_paused
from runners.occupancy.waiting import machine_awaited
from runners.own_workload.arguments import USUAL_SUITE
from runners.own_workload.suite_folder import suite_of
from runners.service.installed import plan_in_use
from runners.trying.answer import TryAnswer, basis, heads, markdown, table
from runners.trying.arguments import SERVER_KEYS
from runners.trying.changes import changes_of
from runners.trying.extension_sides import extension_sides
from runners.trying.own_clone import engine_here
from runners.trying.reach import reach_of
from runners.trying.sides import Sides, TryError, sides_of, with_servers
from runners.trying.trial import TrialOutcome, TrialRequest, history_of_tries, run_trial, timed_request
from suites.additions.variant import UNCHANGED, Variant
from suites.definition import Suite, load_suite
from suites.keys.durability import Durability
from suites.metrics import INSTRUCTIONS, PRIMARY


def main(arguments: argparse.Namespace) -> int:
    """Try, print the answer, and return the exit code that `--help` documents."""
    home = locate_for_writing()
    if arguments.box is not None or arguments.check:
        box, arguments = _planned(arguments)
        if arguments.check:
            print(box.label)
            return 0
        require_not_paused(home, now())
    if arguments.page is not None:
        require_page(Path(arguments.page))
    engine = Engine(arguments.engine or engine_here(arguments.git) or Engine.POSTGRES)
    # A mistake in them is said before anything is fetched.
    every = _servers(arguments)
    suite = load_suite(suite_of(arguments, {engine})).with_declared(arguments.memory, arguments.disk)
    if not arguments.keep_disturbed:
        with progress() as shown:
            accept = "rely on the counts, which do not depend on it, or accept it (--keep-disturbed)"
            note_if_busy(home, shown, accept)
    with progress() as shown:
        sides = with_servers(_sides(arguments, engine, home, shown), every)
    asked = request_of(arguments, sides, suite)
    home.path.mkdir(parents=True, exist_ok=True)
    with (
        progress() as shown,
        machine_awaited(home, arguments.wait * 60, shown),
        open_store(history_of_tries(home)) as store,
    ):
        for line in (f"try: {sides.described}", *sides.notes):
            shown.note(line)
        outcome = run_trial(asked, home, store, shown)
        if outcome.changed.is_nothing:
            return _nothing_to_measure(sides)
        answer = answer_of(store, sides, outcome, home)
        last = last_line(store, answer, home, arguments)
    page = write_page(answer, home, arguments.page)
    text = markdown(answer, str(page))
    print(text, end="")
    add_to_job_summary(text)
    set_job_output("answer", text)
    if arguments.script:
        print(
            f"suite: {suite.name}; to keep it: {shell_line('./tidemark', 'suite', 'save', suite.name)} NAME"
        )
    print(last)
    return answer.exit_code


def _sides(arguments: argparse.Namespace, engine: Engine, home: Home, shown: Progress) -> Sides:
    if arguments.extension or arguments.server:
        return _extension_sides(arguments, home, shown)
    # A workflow names the box: what it asks for may come from somebody who must not run code there.
    is_published = arguments.box is not None
    git, pull = arguments.git, arguments.pull
    return sides_of(
        arguments.what, arguments.against, engine, git, home, shown, is_published=is_published, pull=pull
    )


def _nothing_to_measure(sides: Sides) -> int:
    """Say that both sides are the same server; return 0."""
    text = md(
        "**No difference.** {}: no file that a server is made of differs; nothing was measured.\n",
        sides.described,
    )
    print(text, end="")
    add_to_job_summary(text)
    set_job_output("answer", text)
    return 0


def _servers(arguments: argparse.Namespace) -> Variant:
    """Return what both servers get. Raises VariantError, LayerError, or TryError for a variant."""
    given = read_variants(arguments.variants, SERVER_KEYS)
    for name in given.keys() - {EVERY}:
        raise TryError(
            "both sides of a try get the same settings, companions and layers",
            where=f"{name}:",
            hint="omit the name before the colon; ./tidemark run measures variants",
        )
    return given.get(EVERY, UNCHANGED)


def _extension_sides(arguments: argparse.Namespace, home: Home, shown: Progress) -> Sides:
    if arguments.box is not None:
        raise TryError("a workflow tries no extension", where="--extension", hint="omit --box")
    if not arguments.extension or not arguments.server:
        raise TryError(
            "an extension is tried on one server",
            where="--extension" if arguments.extension else "--server",
            hint="./tidemark try REF --extension NAME=REPO --server postgres@18.6",
        )
    git = git_address(EXTENSIBLE, arguments.git)
    if len(arguments.what) > 1:
        raise TryError("a try of an extension compares one ref", where=" ".join(arguments.what))
    what = arguments.what[0] if arguments.what else None
    return extension_sides(what, arguments.against, arguments.server, arguments.extension, git, home, shown)


def last_line(store: Store, answer: TryAnswer, home: Home, arguments: argparse.Namespace) -> str:
    """Return how the answer stands in one sentence, with the command that comes next."""
    counted, timed = (
        None if comparison is None else comparison.contenders[0]
        for comparison in (answer.counted, answer.timed)
    )
    if answer.reach.is_none:
        return (
            "no step executes what is changed; name others, or statements of your own: --suite, --step, "
            "or --setup and --script"
        )
    shown, options = timed or counted, ["--history", str(history_of_tries(home))]

    def again(minutes: int) -> str:
        return shell_line("./tidemark", *with_budget(list(map(redacted, arguments.words)), minutes))

    if shown is None:
        return f"nothing was measured; what this machine lacks: {command(['./tidemark', 'check'])}"
    if timed is None:
        more = located(again(int(arguments.budget) + LOADING_MINUTES))
        return f"throughput is open, counts are kept; with rounds: {more}"
    with store.database.reading() as connection:
        took = session_seconds(connection, shown.session.id, shown.session.options)
    is_open = any(step.is_open for step in timed.steps)
    if not is_open and counted and any(step.judged.verdict is Verdict.REGRESSION for step in counted.steps):
        return closing(counted, took.counted, options)
    return closing(timed, took.timed, options, again if arguments.words else None)


def request_of(arguments: argparse.Namespace, sides: Sides, suite: Suite) -> TrialRequest:
    """Return the request of a command line.

    Raises SuiteError, LayoutError, or TryError for an engine of no use here.
    """
    if sides.base.engine not in suite.engines:
        raise TryError(f"{suite.name} does not run on {sides.base.engine}")
    asked = TrialRequest(
        sides,
        suite,
        arguments.profile,
        suite.select(tuple(arguments.step), arguments.profile, arguments.clients),
        arguments.budget * 60,
        arguments.keep_disturbed,
        layouts=arguments.layouts,
        counts=not arguments.no_exact,
        durability=Durability(arguments.durability),
    )
    require_layouts(timed_request(asked, 0.0))
    return asked


def answer_of(store: Store, sides: Sides, outcome: TrialOutcome, home: Home) -> TryAnswer:
    """Return the answer from the sessions of a try, and what the home has counted before."""
    failures = list(outcome.failures)

    def compared(session: SessionOutcome | None, metric: str) -> Comparison | None:
        # Of a session that ended before its first round the answer says that there are none.
        if session is None or {str(sides.base), str(sides.tip)} <= session.without_result:
            return None
        options = CompareOptions(session=session.uid, metric=metric)
        try:
            return compare(store, sides.base, (sides.tip,), options)
        except TidemarkError as error:
            failures.append(str(error))
            return None

    counted, timed = compared(outcome.counted, INSTRUCTIONS), compared(outcome.timed, PRIMARY)
    changes = changes_of(store, counted, timed)
    reach = reach_of(store, home, sides.tip.engine, outcome.changed, counted, timed)
    return TryAnswer(sides, counted, timed, outcome.seconds / 60, tuple(failures), changes, reach)


def require_page(path: Path) -> None:
    """Raise TryError if there is something at `path` that is no page, before anything is measured."""
    if path.is_dir():
        raise TryError("a folder lies where the page is to be written", where=str(path))
    if not path.is_file():
        return
    with path.open("rb") as file:
        begins = file.read(len(_PAGE))
    if begins and begins.lower() != _PAGE:
        raise TryError(
            "a file that is no page lies where the page is to be written, and is left as it is",
            where=str(path),
            hint="name a new file with --page",
        )


_PAGE = b"<!doctype html>"


def write_page(answer: TryAnswer, home: Home, chosen: str | None) -> Path:
    """Write the page to mail; return its path."""
    session = answer.timed or answer.counted
    uid = session.contenders[0].session.uid if session else "nothing"
    path = Path(chosen) if chosen else home.path / "tries" / f"try-{uid}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    named = [("Instructions", answer.counted), ("Throughput", answer.timed)]
    comparisons = [(heading, compared) for heading, compared in named if compared is not None]
    title = f"Try: {answer.sides.described}"
    below = {
        "Functions and resources": [change.text for change in answer.changes],
        "What it rests on": list(basis(answer)),
    }
    page = tried_alone(title, answer.headline, heads(answer), table(answer), below, comparisons)
    path.write_text(page, encoding="utf-8")
    return path


def _planned(arguments: argparse.Namespace) -> tuple[Box, argparse.Namespace]:
    """Check the inputs of a workflow; return the box, and the arguments with the git source of its plan.

    Raises TidemarkError for a box, an engine, a suite, a profile or a step that does not exist, a ref that
    git could not have, a patch, and a script or a setting of the caller's.
    """
    if arguments.script:
        raise TryError(
            "a script of your own is not run on a box of the plan",
            where="--script",
            hint="omit --box, or name a suite of the checkout",
        )
    if arguments.variants:
        # A setting may name a command that the server runs.
        raise TryError(
            "servers on a box of the plan get no settings, companions or layers of the caller's",
            where="--box",
            hint="omit --with, or name a suite of the checkout that has them",
        )
    if arguments.pull is not None and arguments.box is None:
        raise TryError("a pull request is one of the plan's git source", where="--pull", hint="add --box")
    plan = load_plan(plan_in_use(arguments.plan))
    if len(arguments.what) != 1:
        raise TryError("with --box one branch, tag or commit is tried", where=" ".join(arguments.what))
    engine = Engine(arguments.engine or Engine.POSTGRES)
    inputs = TryInputs(
        engine,
        arguments.what[0],
        arguments.against,
        arguments.suite or USUAL_SUITE,
        arguments.profile,
        tuple(arguments.step),
    )
    box = box_for_try(plan, arguments.box or "", inputs)
    git = arguments.git or plan.engines[engine].git
    return box, argparse.Namespace(**{**vars(arguments), "git": git, "engine": engine})
