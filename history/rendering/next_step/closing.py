"""The sentence with which a comparison ends, and the command that comes next, complete for a shell."""

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from build.errors import shell_line
from build.home import ROOT
from build.progress import in_words
from history.comparison.beside.work_done import own_failures
from history.comparison.exact import MAX_PASSES
from history.comparison.result import ContenderComparison, StepComparison
from history.comparison.verdict import Gap, Verdict
from history.counts import counted
from history.rendering.commands import DECIDED, quoted, run_again, said
from history.stats.estimators import MINIMUM_REPETITIONS
from history.store.sqlite.read_only import is_compressed


def rounds_needed(step: StepComparison) -> int:
    """Return after how many rounds in all the interval of an open step is narrow enough for a verdict.

    Half its width shrinks with the root of the rounds: to the distance of the estimate from 1 for a change,
    or from the threshold for none.
    """
    interval, judged = step.judged.interval, step.judged
    if interval is None or interval.low <= 0:
        return max(MINIMUM_REPETITIONS, judged.pairs + 1)
    size, edge = abs(math.log(interval.estimate)), math.log1p(judged.threshold)
    half = max(math.log(interval.high / interval.estimate), math.log(interval.estimate / interval.low))
    wanted = size if size >= edge else edge - size
    rounds = math.inf if wanted <= 0 else math.ceil(interval.n * (half / wanted) ** 2)
    return max(judged.pairs + 1, int(min(rounds, 1_000_000)))


HOME = "TIDEMARK_HOME"

LOADING_MINUTES = 1

MAX_HOURS = 12
"""The longest that rounds are worth: beyond it, a quieter machine is what helps."""

UNKNOWN_SECONDS = 30.0
"""What a round of a step takes for one version, where the history does not say."""


def closing(
    contender: ContenderComparison,
    seconds: Mapping[str, float],
    options: Sequence[str] = (),
    again: Callable[[int], str] | None = None,
    *,
    has_costs: bool = False,
) -> str:
    """Return the last line on a comparison within a session, or over nights.

    `seconds` are what a round takes for one version, by step; `options` are those of the command line that
    say where things are, such as the history.
    `again` returns the command that goes on with the session for so many minutes, so that the rounds so far
    count; without it the open steps are measured in a new one.
    `has_costs` is whether the costs of the steps are shown above.
    """
    failed = {failure.step for failure in own_failures(contender)}
    still_open = [step for step in contender.steps if _may_be_decided(step) and step.step not in failed]
    if contender.nights is not None:
        return _over_nights(contender, still_open, options)
    if still_open:
        return _open(contender, still_open, seconds, options, again)
    worse = [step for step in contender.steps if step.judged.verdict is Verdict.REGRESSION]
    pair = [str(contender.base), str(contender.contender)]
    chosen = ["--session", contender.session.uid, *options]
    profiled = [step for step in worse if step.gained_instructions]
    if profiled:
        # Only where both have a counted profile: a history that was pruned has none to compare.
        words = ["./tidemark", "profile", "diff", *pair, "--step", profiled[0].step, *chosen]
        return f"regression in {counted(len(worse), 'step')}; the functions that cost more: {command(words)}"
    words = ["./compare.py", *pair, *chosen]
    decided = decided_words(contender, failed)
    if has_costs:
        page = command([*words, "--format", "html"])
        return f"{decided}; as a page to mail: {page} > comparison.html"
    costs = command([*words, "--costs"])
    if failed:
        return (
            f"{counted(len(failed), 'step')} failed on {contender.contender} alone; what others cost: {costs}"
        )
    return f"{decided}; what each of them costs: {costs}"


def decided_words(contender: ContenderComparison, failed: Collection[str] = ()) -> str:
    """Return how the steps stand where none is open but those that `failed`."""
    undirected = [step.judged.metric for step in contender.steps if step.judged.gap is Gap.NO_DIRECTION]
    if undirected:
        return f"no step is judged by {undirected[0]}"
    unknown = [step.step for step in contender.steps if step.unknown and step.step not in failed]
    if not unknown:
        return "every step is decided"
    return f"every verdict is decided; {counted(len(unknown), 'step')} may be worse in something else"


def _may_be_decided(step: StepComparison) -> bool:
    """Return whether further rounds may give a verdict: none judge a metric without a better direction."""
    return step.is_open and step.judged.gap is not Gap.NO_DIRECTION


def _over_nights(
    contender: ContenderComparison, still_open: Sequence[StepComparison], options: Sequence[str]
) -> str:
    nights = counted(len(contender.nights.started_at) if contender.nights else 0, "night")
    if still_open:
        head = f"undecided in {len(still_open)} of {counted(len(contender.steps), 'step')} over {nights}"
        names = [step.step for step in still_open]
        *notes, line = run_again(contender.session, (), names, DECIDED)
        if line.startswith("#"):
            return f"{head}{said([line], ': ')}"
        head += said(notes)
        again = located(" ".join([line, shell_line(*for_recording(options))]).rstrip())
        return f"{head}; further nights narrow it, or rounds of its last night's versions: {again}"
    where = ["--history", options[options.index("--history") + 1]] if "--history" in options else []
    changes = command(["./tidemark", "history", "changes", *where])
    return f"{decided_words(contender)} over {nights}; when each changed: {changes}"


def _open(
    contender: ContenderComparison,
    still_open: Sequence[StepComparison],
    seconds: Mapping[str, float],
    options: Sequence[str],
    again: Callable[[int], str] | None,
) -> str:
    counts = contender.session.only_counted
    least, most = contender.looks or (1, None)
    needed = {step.step: MAX_PASSES if counts else max(least, rounds_needed(step)) for step in still_open}
    feasible = {name: rounds if most is None else min(rounds, most) for name, rounds in needed.items()}
    pairs = {step.step: step.judged.pairs if again else 0 for step in still_open}
    versions = 2
    total = sum(
        versions * max(1, rounds - pairs[name]) * seconds.get(name, UNKNOWN_SECONDS)
        for name, rounds in feasible.items()
    )
    head = f"undecided in {len(still_open)} of {counted(len(contender.steps), 'step')}"
    if counts and all(step.judged.pairs >= MAX_PASSES for step in still_open):
        # What leaves them open is not noise: further passes would count the same again.
        judged = ["--session", contender.session.uid, "--metric", still_open[0].judged.metric, *options]
        words = ["./compare.py", str(contender.base), str(contender.contender), *judged]
        return (
            f"{head} after {MAX_PASSES} passes, the most that are counted: too near the threshold, or counts"
            f" that disagree; with another threshold: {command([*words, '--exact-threshold', '1'])}"
        )
    why = f"what makes them so: {command(['./tidemark', 'check'])}"
    what = f"{contender.session.round_name}s"
    if again and most is not None and all(rounds >= most for rounds in pairs.values()):
        return f"{head} after {most} {what}, the most that are measured; {why}"
    if total > MAX_HOURS * 3600:
        return f"{head}; {what} as noisy as these would take about {in_words(total)} more; {why}"
    hard = [name for name, rounds in needed.items() if most is not None and rounds > most]
    if hard:
        names = "" if len(hard) == len(needed) else f"{', '.join(hard)}: "
        head += f" ({names}perhaps even after {most} {what})"
    notes: Sequence[str] = ()
    if again:
        line = located(again(minutes_for(total)))
    else:
        pair = [str(contender.base), str(contender.contender)]
        *notes, line = run_again(contender.session, pair, list(feasible), None if counts else DECIDED)
        if line.startswith("#"):
            return f"{head}{said([line], ': ')}"
        line = located(" ".join([line, shell_line(*for_recording(options))]).rstrip())
    return f"{head}: about {in_words(total)} more{said(notes)}: {line}"


def for_recording(options: Sequence[str]) -> Sequence[str]:
    """Return options of a command that reads as one that measures takes them.

    A compressed history can only be read: without it, the command records into the history of the home.
    """
    if "--history" in options:
        place = options.index("--history")
        if (file := Path(options[place + 1])).is_file() and is_compressed(file):
            return [*options[:place], *options[place + 2 :]]
    return options


def minutes_for(seconds: float) -> int:
    """Return a budget in minutes for so many seconds of rounds: servers are loaded before the first one."""
    return math.ceil(seconds / 60) + LOADING_MINUTES


def with_budget(words: Sequence[str], minutes: int) -> list[str]:
    """Return the words of a command line with `minutes` as its only `--budget`."""
    return with_option(words, "--budget", str(minutes))


def with_option(words: Sequence[str], option: str, value: str) -> list[str]:
    """Return the words of a command line in which an option, such as `--budget`, has this value alone."""
    kept: list[str] = []
    is_value = False
    for word in words:
        if is_value or word.startswith(f"{option}="):
            is_value = False
        elif word == option:
            is_value = True
        else:
            kept.append(word)
    return [*kept, option, value]


def command(words: Sequence[str]) -> str:
    """Return the words of a command of Tidemark as a line for the shell of whoever reads it."""
    return located(quoted(words))


def located(line: str) -> str:
    """Return a line that begins with `./tidemark` or `./compare.py` as it has to be typed here.

    The program is named by its path unless it is in the working folder, and the home is that of this process.
    """
    program, _, rest = line.partition(" ")
    if Path.cwd() != ROOT:
        program = shell_line(ROOT / program)
    home = os.environ.get(HOME)
    chosen = [f"{HOME}={shell_line(Path(home).absolute())}"] if home else []
    return " ".join([*chosen, program, rest])
