"""The answer of a try: one sentence, one table, and what it rests on, to be read in ten seconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from history.comparison.beside.domain import domain_of
from history.comparison.finding import Finding, has_left_more
from history.comparison.findings.sources import EVENTS, FAILURES
from history.comparison.findings.unknown_metrics import may_be_worse, unknown_metrics
from history.comparison.result import Comparison, StepComparison
from history.comparison.verdict import MetricChange, Verdict
from history.counts import counted
from history.escaping.markdown import Markdown, joined, md, row
from history.metric_words import words_of
from history.numbers import DASH, VERY_WIDE, is_very_wide, percents
from history.rendering.notes import explained_lines, findings_lines
from history.stats.estimators import Interval
from runners.trying.changes import StepChange
from runners.trying.reach import Reach
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
    def findings(self) -> tuple[Finding, ...]:
        """What is certain beside these verdicts, in rounds and then in counted passes."""
        rounds, passes = (() if side is None else side.findings for side in (self.timed, self.counted))
        told = {(found.source, found.metric) for found in rounds if found.metric}
        more = (found for found in passes if (found.source, found.metric) not in told)
        return tuple(dict.fromkeys((*rounds, *more)))

    @property
    def worse(self) -> tuple[Finding, ...]:
        """The findings that are a regression of their own."""
        return tuple(found for found in self.findings if found.is_worse)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """What the new side's server failed to do where the base's did not."""
        return tuple(found for found in self.worse if found.source == FAILURES)

    @property
    def is_worse(self) -> bool:
        """Whether it is slower, has a finding that is worse, or executes more without being faster."""
        more = self.instructions is Verdict.REGRESSION and self.throughput is not Verdict.IMPROVEMENT
        return bool(self.worse) or self.throughput is Verdict.REGRESSION or more

    @property
    def is_decided(self) -> bool:
        """Whether rounds have decided: equal instructions say nothing of locks, I/O and waiting."""
        return self.throughput not in (None, Verdict.INCONCLUSIVE)

    @property
    def is_known(self) -> bool:
        """Whether rounds have decided, and no metric that is judged beside throughput may be worse."""
        return self.timed is not None and self.is_decided and not self.timed.unknown

    @property
    def is_unchanged(self) -> bool:
        """Whether throughput, instructions and all metrics that are judged are known to be the same."""
        if self.timed is None or self.findings or self.instructions not in (None, Verdict.UNCHANGED):
            return False
        beside = (judged for judged in self.timed.beside if judged.row.judged and judged.pairs)
        return self.throughput is Verdict.UNCHANGED and all(
            judged.change is MetricChange.SAME for judged in beside
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
    reach: Reach = field(default_factory=Reach)
    """Whether any step executes what is changed."""

    @property
    def steps(self) -> tuple[StepAnswer, ...]:
        """All steps, in suite order."""
        counted, timed = _by_step(self.counted), _by_step(self.timed)
        names = dict.fromkeys((*(timed or counted), *counted))
        return tuple(StepAnswer(name, counted.get(name), timed.get(name)) for name in names)

    @property
    def told(self) -> tuple[StepComparison, ...]:
        """The steps with all findings, those of counted passes only where rounds do not have them."""
        sides = ((step.timed or step.counted, step.findings) for step in self.steps)
        return tuple(replace(side, findings=findings) for side, findings in sides if side is not None)

    @property
    def exit_code(self) -> int:
        """1 when any step is worse; 2 when anything judged may be worse, something failed, or no step
        executes what is changed; else 0."""
        if any(step.is_worse for step in self.steps):
            return 1
        whole = (
            not (self.failures or self.reach.is_none)
            and self.steps
            and all(step.is_known for step in self.steps)
        )
        return 0 if whole else UNDECIDED

    @property
    def headline(self) -> str:
        """The answer in one sentence, and what is unknown in another."""
        slower = self._named(Verdict.REGRESSION, "throughput")
        more = self._named(Verdict.REGRESSION, "instructions")
        faster = self._named(Verdict.IMPROVEMENT, "throughput")
        fewer = self._named(Verdict.IMPROVEMENT, "instructions")
        failed = [failure.line for step in self.steps for failure in step.failures]
        worse = self._worse()
        if failed:
            parts, word = failed[:1], "Fails"
        elif slower or more:
            parts = [f"in {slower}"] * bool(slower) + [f"more instructions in {more}"] * bool(more)
            parts += [worse] * bool(worse)
            word = "Slower" if slower else "More work"
        elif worse:
            cheaper = _listed([step.step for step in self.steps if has_left_more(step.findings)])
            parts = [worse, *[f"faster in {faster}"] * bool(faster)]
            parts += [f"a cheaper reset in {cheaper}"] * bool(cheaper)
            word = "A trade" if any(step.timed and step.timed.is_trade for step in self.steps) else "Worse"
        elif faster or fewer:
            parts = [f"in {faster}"] * bool(faster)
            parts += [f"fewer instructions in {fewer}"] * bool(fewer)
            word = "Faster" if faster else "Less work"
        else:
            parts, word = [], self._unchanged()
        mark = " " if parts and parts[0].startswith("in ") else ": " if parts else ""
        return " ".join(filter(None, (f"{word}{mark}{'; '.join(parts)}.", self.reach.text, self._open())))

    def _worse(self) -> str:
        """Return the findings that are worse, the first ones by name."""
        worse = [found for step in self.steps for found in step.worse]
        events: dict[str, dict[str, None]] = {}
        for found in worse:
            if found.source == EVENTS:
                events.setdefault(words_of(found.metric).events, {})[found.step] = None
        others = [found for found in worse if found.source not in (EVENTS, FAILURES)]
        by_place: dict[str, list[str]] = {}
        for found in others[:_MAX_NAMED]:
            by_place.setdefault(found.where, []).append(found.text)
        named = [f"more {noun} in {', '.join([*steps][:_MAX_NAMED])}" for noun, steps in events.items()]
        named += [f"{', '.join(texts)} in {place}" for place, texts in by_place.items()]
        rest = len(others) - _MAX_NAMED
        named += [f"{rest} more"] * (rest > 0)
        return ", ".join(named)

    def _unchanged(self) -> str:
        steps = self.steps
        if self.reach.is_none:
            return "Undecided"
        if steps and all(step.is_unchanged for step in steps):
            return "No difference in any step"
        if steps and all(step.is_known for step in steps):
            return "No worse in any step"
        if steps and all(step.instructions is Verdict.UNCHANGED for step in steps):
            return "Undecided: the same instructions in all steps"
        return "Undecided"

    def _open(self) -> str:
        """Return what may be worse without being known to be, and how wide the widest interval is."""
        if self.timed is None:
            return "Throughput was not measured."
        steps = [step.timed for step in self.steps if step.timed is not None and not step.failures]
        parts = []
        still = [step.judged for step in steps if step.is_open]
        if still:
            known = [judged.interval for judged in still if judged.interval is not None]
            widest = max(known, key=lambda interval: interval.high / interval.low, default=None)
            width = "" if widest is None else f": {_ends(widest)} %"
            at_most = " at the widest" if width and len(still) > 1 else ""
            named = [step.step for step in steps if step.is_open]
            where = named[0] if len(named) == 1 else f"{len(named)} of {counted(len(self.steps), 'step')}"
            parts.append(f"Throughput is unknown in {where}{width}{at_most}.")
        judged_by = {step.judged.metric for step in steps}
        others = [unknown for unknown in unknown_metrics(steps) if unknown.metric not in judged_by]
        if others:
            line = may_be_worse(others, most=1)
            parts.append(f"{line[0].upper()}{line[1:]}.")
        return " ".join(parts)

    def _named(self, verdict: Verdict, which: str) -> str:
        """Return the steps with a verdict, the largest change first, with their changes."""
        found = []
        for step in self.steps:
            compared = step.timed if which == "throughput" else step.counted
            if getattr(step, which) is verdict and compared is not None:
                found.append((abs((compared.judged.value or 1) - 1), f"{step.step} {_change(compared)}"))
        return _listed([text for _, text in sorted(found, reverse=True)])


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def markdown(answer: TryAnswer, page: str) -> Markdown:
    """Return the summary as Markdown, for a terminal and the summary of a job; `page` is the file to mail."""
    lines: list[str] = [md("## Try: {}", answer.sides.described), "", md("**{}**", answer.headline), ""]
    lines += [md("| {} | {} | {} |\n|:--|--:|--:|", *heads(answer)), *map(row, table(answer)), ""]
    lines += [md("- {}", line) for line in findings_lines(answer.told)]
    lines += [md("- {}", change.text) for change in answer.changes]
    lines += [md("- {}", line) for step in answer.steps if step.timed for line in explained_lines(step.timed)]
    lines += [md("- {}", line) for line in domains(answer)]
    lines += [md("- failed: {}", failure) for failure in _other_failures(answer)]
    lines += [md("- {}", line) for line in basis(answer)]
    lines += [md("- page to mail: {}", page), ""]
    return joined(lines)


def _other_failures(answer: TryAnswer) -> Iterator[str]:
    """Yield what failed in either session, once each, and not what the findings of the steps have told."""
    told = [found.text for step in answer.steps for found in step.failures]
    for failure in dict.fromkeys(answer.failures):
        reason = " ".join(failure.split())
        if not any(text.partition(" alone: ")[2] in reason for text in told):
            yield failure


def domains(answer: TryAnswer) -> Iterator[str]:
    """Yield on what the rounds were measured, or else counted, and what cannot be seen there."""
    comparison = answer.timed or answer.counted
    for contender in comparison.contenders if comparison is not None else ():
        domain = domain_of(contender)
        if domain is not None:
            yield domain.text


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
    if answer.reach.note:
        yield answer.reach.note
    for what, comparison in (("counted", answer.counted), ("measured", answer.timed)):
        if comparison is None:
            yield f"{'instructions were not counted' if what == 'counted' else 'no rounds were measured'}"
            continue
        (contender,) = comparison.contenders
        pairs = [step.judged.pairs for step in contender.steps]
        span = f"{min(pairs)}" if min(pairs) == max(pairs) else f"{min(pairs)} to {max(pairs)}"
        unit = "passes" if what == "counted" else f"interleaved {contender.session.round_name}s"
        unit += f", in {contender.session.layouts} layouts a side," if contender.session.layouts else ""
        session = contender.session
        yield (
            f"{what}: {span} {unit} of {session.suite}, {session.profile}, on {session.machine.hostname} "
            f"(session {session.uid})"
        )
        if contender.same_rows:
            proved = [step.step for step in contender.steps if step.step in contender.same_rows]
            where = "every step" if len(proved) == len(contender.steps) else ", ".join(proved)
            yield f"the same rows after the same transactions and a crash in {where} (session {session.uid})"
    yield f"{counted(round(answer.minutes), 'minute')}, compiling included"


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
    return f"{percents(step.judged.value or 1.0)} %"


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return DASH
    return VERY_WIDE if is_very_wide(interval) else _ends(interval)


def _ends(interval: Interval) -> str:
    return f"{percents(interval.low)} to {percents(interval.high)}"
