"""The answer of a try: one sentence, one table, and what it rests on, to be read in ten seconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from history.comparison.result import Comparison, StepComparison
from history.comparison.verdict import Verdict
from history.escaping.markdown import Markdown, joined, md, row
from history.rendering.numbers import DASH
from history.stats.estimators import Interval
from runners.trying.changes import StepChange
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

    @property
    def instructions(self) -> Verdict | None:
        """The verdict on instructions; None without one."""
        return None if self.counted is None else self.counted.judged.verdict

    @property
    def throughput(self) -> Verdict | None:
        """The verdict on throughput; None without one."""
        return None if self.timed is None else self.timed.judged.verdict

    @property
    def is_worse(self) -> bool:
        """Whether it is slower, or executes more without being faster for it."""
        more = self.instructions is Verdict.REGRESSION and self.throughput is not Verdict.IMPROVEMENT
        return self.throughput is Verdict.REGRESSION or more

    @property
    def is_decided(self) -> bool:
        """Whether rounds or counts have decided."""
        return any(
            verdict not in (None, Verdict.INCONCLUSIVE) for verdict in (self.instructions, self.throughput)
        )


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
        return tuple(StepAnswer(name, counted.get(name), timed.get(name)) for name in names)

    @property
    def exit_code(self) -> int:
        """1 when any step is worse; 2 when one failed or neither counts nor rounds decided it; else 0."""
        if any(step.is_worse for step in self.steps):
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
        if slower or more:
            parts = [f"slower in {slower}"] * bool(slower) + [f"more instructions in {more}"] * bool(more)
            word = "Slower" if slower else "More work"
        elif faster or fewer:
            parts = [f"faster in {faster}"] * bool(faster)
            parts += [f"fewer instructions in {fewer}"] * bool(fewer)
            word = "Faster" if faster else "Less work"
        else:
            parts, word = [], self._unchanged()
        return f"{word}{': ' + '; '.join(parts) if parts else ''}. {self._open()}".rstrip()

    def _unchanged(self) -> str:
        steps = self.steps
        counted = sum(step.instructions is Verdict.UNCHANGED for step in steps)
        if steps and counted == len(steps):
            return "No difference: the same instructions in all steps"
        if steps and all(step.is_decided for step in steps):
            return "No difference in any step"
        return "Undecided"

    def _open(self) -> str:
        """Return how much of the throughput is undecided."""
        if self.timed is None:
            return "Throughput was not measured."
        still = sum(step.throughput in (None, Verdict.INCONCLUSIVE) for step in self.steps)
        return f"Throughput is undecided in {still} of {len(self.steps)} steps." if still else ""

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
