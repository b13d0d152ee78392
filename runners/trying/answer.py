"""The answer of a try: one sentence, one table, and what it rests on, to be read in ten seconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from history.comparison.beside.dearer_costs import dearer_costs
from history.comparison.beside.rare_events import rare_events
from history.comparison.beside.work_done import own_failures
from history.comparison.result import Comparison, StepComparison
from history.comparison.verdict import Judged, Verdict
from history.escaping.markdown import Markdown, joined, md, row
from history.rendering.notes import rare_events_lines
from history.rendering.numbers import DASH
from history.stats.estimators import Interval
from runners.trying.changes import StepChange, named_cost
from runners.trying.sides import Sides

UNDECIDED = 2

_MAX_NAMED = 3
"""The steps that a sentence names."""


@dataclass(frozen=True)
class StepAnswer:
    """What a try says of one step."""

    step: str
    counted: StepComparison | None
    timed: StepComparison | None
    failure: str = ""
    """What the new side's server failed to do where the base's did not; empty if nothing."""

    @property
    def instructions(self) -> Verdict | None:
        """The verdict on instructions; None without one."""
        return None if self.counted is None else self.counted.judged.verdict

    @property
    def throughput(self) -> Verdict | None:
        """The verdict on throughput; None without one."""
        return None if self.timed is None else self.timed.judged.verdict

    @property
    def dearer(self) -> tuple[Judged, ...]:
        """The costs that certainly grew, in a step that is not faster for it."""
        return () if self.timed is None else dearer_costs(self.timed)

    @property
    def is_worse(self) -> bool:
        """Whether it failed or is slower, or executes or uses more without being faster for it."""
        more = self.instructions is Verdict.REGRESSION and self.throughput is not Verdict.IMPROVEMENT
        return bool(self.failure or self.dearer) or self.throughput is Verdict.REGRESSION or more

    @property
    def is_decided(self) -> bool:
        """Whether rounds have decided: equal instructions say nothing of locks, I/O and waiting."""
        return self.throughput not in (None, Verdict.INCONCLUSIVE)

    @property
    def is_unchanged(self) -> bool:
        """Whether throughput is unchanged, and instructions too where they were counted."""
        return self.throughput is Verdict.UNCHANGED and self.instructions in (None, Verdict.UNCHANGED)


@dataclass(frozen=True)
class TryAnswer:
    """What a try found."""

    sides: Sides
    counted: Comparison | None
    timed: Comparison | None
    minutes: float
    failures: tuple[str, ...] = ()
    changes: tuple[StepChange, ...] = ()
    """What changed, of the steps in which functions or costs did."""

    @property
    def steps(self) -> tuple[StepAnswer, ...]:
        """All steps, in suite order."""
        counted, timed = _by_step(self.counted), _by_step(self.timed)
        names = dict.fromkeys((*(timed or counted), *counted))
        failed = {
            failure.step: failure.reason
            for comparison in (self.timed, self.counted)
            if comparison is not None
            for failure in own_failures(comparison.contenders[0])
        }
        return tuple(
            StepAnswer(name, counted.get(name), timed.get(name), failed.get(name, "")) for name in names
        )

    @property
    def more_events(self) -> tuple[str, ...]:
        """The steps whose rounds have decidedly more errors, refusals or stalls."""
        contenders = () if self.timed is None else self.timed.contenders
        worse = [
            events.step
            for contender in contenders
            for events in rare_events(contender.paired)
            if events.is_worse
        ]
        return tuple(dict.fromkeys(worse))

    @property
    def exit_code(self) -> int:
        """1 when any step is worse; 2 when rounds have not decided one, or something else failed; else 0."""
        if self.more_events or any(step.is_worse for step in self.steps):
            return 1
        whole = not self.failures and self.steps and all(step.is_decided for step in self.steps)
        return 0 if whole else UNDECIDED

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        slower = self._named(Verdict.REGRESSION, "throughput")
        more = self._named(Verdict.REGRESSION, "instructions")
        faster = self._named(Verdict.IMPROVEMENT, "throughput")
        fewer = self._named(Verdict.IMPROVEMENT, "instructions")
        events = ", ".join(self.more_events[:_MAX_NAMED])
        failed = [f"{step.step}: {step.failure}" for step in self.steps if step.failure]
        dearer = [f"{named_cost(cost)} in {step.step}" for step in self.steps for cost in step.dearer]
        if failed:
            parts, word = failed[:1], "Fails"
        elif slower or more:
            parts = [f"slower in {slower}"] * bool(slower) + [f"more instructions in {more}"] * bool(more)
            parts += [f"more errors or stalls in {events}"] * bool(events)
            word = "Slower" if slower else "More work"
        elif events:
            parts, word = [f"more errors or stalls in {events}"], "Worse"
        elif dearer:
            parts, word = [", ".join(dearer[:_MAX_NAMED])], "More work"
        elif faster or fewer:
            parts = [f"faster in {faster}"] * bool(faster)
            parts += [f"fewer instructions in {fewer}"] * bool(fewer)
            word = "Faster" if faster else "Less work"
        else:
            parts, word = [], self._unchanged()
        return f"{word}{': ' + '; '.join(parts) if parts else ''}. {self._open()}".rstrip()

    def _unchanged(self) -> str:
        steps = self.steps
        if steps and all(step.is_unchanged for step in steps):
            return "No difference in any step"
        if steps and all(step.instructions is Verdict.UNCHANGED for step in steps):
            return "Undecided: the same instructions in all steps"
        return "Undecided"

    def _open(self) -> str:
        """Return how much of the throughput is unknown, and how wide the widest interval is."""
        if self.timed is None:
            return "Throughput was not measured."
        still = [step for step in self.steps if not step.is_decided and not step.failure]
        if not still:
            return ""
        known = [step.timed.judged.interval for step in still if step.timed is not None]
        widest = max(filter(None, known), key=lambda interval: interval.high / interval.low, default=None)
        width = "" if widest is None else f": {_interval(widest)} at the widest"
        return f"Throughput is unknown in {len(still)} of {len(self.steps)} steps{width}."

    def _named(self, verdict: Verdict, which: str) -> str:
        """Return the steps with a verdict, the largest change first, with their changes."""
        found = []
        for step in self.steps:
            compared = step.timed if which == "throughput" else step.counted
            if getattr(step, which) is verdict and compared is not None:
                found.append((abs((compared.judged.value or 1) - 1), f"{step.step} {_change(compared)}"))
        names = [text for _, text in sorted(found, reverse=True)]
        more = len(names) - _MAX_NAMED
        return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def markdown(answer: TryAnswer, page: str) -> Markdown:
    """Return the summary as Markdown, for a terminal and the summary of a job; `page` is the file to mail."""
    lines: list[str] = [md("## Try: {}", answer.sides.described), "", md("**{}**", answer.headline), ""]
    lines += [md("| {} | {} | {} |\n|:--|--:|--:|", *heads(answer)), *map(row, table(answer)), ""]
    lines += [md("- {}", change.text) for change in answer.changes]
    for contender in answer.timed.contenders if answer.timed is not None else ():
        lines += [md("- {}", line) for line in rare_events_lines(contender)]
    lines += [md("- failed: {}", failure) for failure in answer.failures]
    lines += [md("- {}", line) for line in basis(answer)]
    lines += [md("- page to mail: {}", page), ""]
    return joined(lines)


def heads(answer: TryAnswer) -> Sequence[str]:
    """Return the heads of the table; the last one is the unit of what was timed."""
    timed = next((step.timed for step in answer.steps if step.timed is not None), None)
    return ("step", "instructions", timed.judged.unit if timed is not None else "rounds")


def table(answer: TryAnswer) -> list[Sequence[str]]:
    """Return the cells of the table, the steps that are worse first."""
    ordered = sorted(answer.steps, key=lambda step: not step.is_worse)
    return [(step.step, _cell(step.counted), _cell(step.timed)) for step in ordered]


def basis(answer: TryAnswer) -> Iterator[str]:
    """Yield what the answer rests on, and what was left out."""
    yield from answer.sides.notes
    for what, comparison in (("counted", answer.counted), ("measured", answer.timed)):
        if comparison is None:
            yield f"{'instructions were not counted' if what == 'counted' else 'no rounds were measured'}"
            continue
        (contender,) = comparison.contenders
        pairs = [step.judged.pairs for step in contender.steps]
        span = f"{min(pairs)}" if min(pairs) == max(pairs) else f"{min(pairs)} to {max(pairs)}"
        unit = "passes" if what == "counted" else "interleaved rounds"
        unit += f", in {contender.session.layouts} layouts a side," if contender.session.layouts else ""
        session = contender.session
        yield (
            f"{what}: {span} {unit} of {session.suite}, {session.profile}, on {session.machine.hostname} "
            f"(session {session.uid})"
        )
    yield f"{answer.minutes:.0f} minutes, compiling included"


def _by_step(comparison: Comparison | None) -> dict[str, StepComparison]:
    if comparison is None:
        return {}
    (contender,) = comparison.contenders
    return {step.step: step for step in contender.steps}


def _cell(step: StepComparison | None) -> str:
    """Return change, interval and verdict of a step."""
    if step is None:
        return DASH
    verdict = step.judged.verdict
    if verdict is None:
        return str(step.judged.reason)
    why = f": {step.judged.reason}" if step.judged.reason else ""
    return f"{_change(step)} ({_interval(step.judged.interval)}) {verdict}{why}"


def _change(step: StepComparison) -> str:
    return _percent(step.judged.value or 1.0)


def _interval(interval: Interval | None) -> str:
    return DASH if interval is None else f"{_percent(interval.low)} to {_percent(interval.high)}"


def _percent(ratio: float) -> str:
    text = f"{100 * (ratio - 1):+.1f}"
    return f"{'±0.0' if float(text) == 0 else text} %"
