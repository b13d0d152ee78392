"""A comparison as the body of an issue or a job summary: a sentence, what changed, and the rest collapsed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from build.version import Version
from history.comparison.result import Comparison, ContenderComparison, StepComparison
from history.comparison.verdict import TRAITS, Tone
from history.counts import counted
from history.escaping.markdown import Markdown, columns, cut, joined, md
from history.numbers import bounds, two_decimals
from history.rendering.markdown import table_row
from history.rendering.notes import basis, findings_lines, unknown_lines
from history.rendering.sparkline import SPARKLINE_LEGEND
from history.rendering.table import (
    LEFT,
    NO_NAMES,
    Row,
    heads,
    legend,
    mean_rows,
    rows,
    step_row,
    title,
)
from suites.metric import Better

MAX_CHARACTERS = 65_000
"""The length of a summary at most. GitHub allows 65,536 in an issue; the rest is left for text around it."""

CUT = md("\n\n*Truncated to GitHub's limit. `--format markdown` or `--format json` has everything.*\n")


def render_summary(comparison: Comparison, names: Mapping[Version, str] = NO_NAMES) -> Markdown:
    """Return at most MAX_CHARACTERS of Markdown, which has the sentences of all contenders in any case.

    `names` are those of contenders that are not called by their version.
    """
    blocks = [list(_blocks(comparison, contender, names)) for contender in comparison.contenders]
    # The sentence and changes of every contender are more important than complete tables and notes.
    whole = joined(block for contender_blocks in blocks for block in contender_blocks)
    if len(whole) <= MAX_CHARACTERS:
        return whole
    short = joined(block for contender_blocks in blocks for block in contender_blocks[:-1])
    return joined([cut(short, MAX_CHARACTERS - len(CUT)), CUT], "")


def sentence(
    comparison: Comparison, contender: ContenderComparison, names: Mapping[Version, str] = NO_NAMES
) -> str:
    """Return one sentence on a contender as plain text: how many steps have which verdict, the worst step."""
    trades = sum(step.is_trade for step in contender.steps)
    counts = Counter(step.judged.verdict for step in contender.steps if not step.is_trade)
    parts = [
        f"{counts[verdict]} {verdict if counts[verdict] == 1 else traits.plural}"
        for verdict, traits in TRAITS.items()
    ]
    if trades:
        parts.insert(0, counted(trades, "trade"))
    if counts[None]:
        parts.append(f"{counts[None]} without a verdict")
    worst = _worst(contender.steps)
    tail = f"; worst: {worst.step} {_ratio_text(worst)}" if worst is not None else ""
    worse = [found for step in contender.steps for found in step.findings if found.is_worse]
    tail += f"; {counted(len(worse), 'finding')} that is worse" if len(worse) == 1 else ""
    tail += f"; {len(worse)} findings that are worse" if len(worse) > 1 else ""
    return f"{title(comparison, contender, names)}: {', '.join(parts)}{tail}."


def _ratio_text(step: StepComparison) -> str:
    return f"{two_decimals(step.judged.value)} ({bounds(step.judged.interval)})"


def _worst(steps: Sequence[StepComparison]) -> StepComparison | None:
    """The worst regression; without one the step furthest on the bad side that is inconclusive."""
    severe = [verdict for verdict, traits in TRAITS.items() if traits.severity]
    for verdict in sorted(severe, key=lambda verdict: -TRAITS[verdict].severity):
        candidates = [step for step in steps if step.judged.verdict is verdict and step.judged.value]
        if candidates:
            return min(candidates, key=_goodness)
    return None


def _goodness(step: StepComparison) -> float:
    sign = 1 if step.judged.better is Better.HIGHER else -1
    return sign * (step.judged.value or 1)


def _blocks(
    comparison: Comparison, contender: ContenderComparison, names: Mapping[Version, str]
) -> Iterator[Markdown]:
    yield md("**{}**\n", sentence(comparison, contender, names))
    shown = [step for step in contender.steps if _is_worth_showing(step)]
    if shown:
        yield _table(heads(contender), (step_row(contender, step) for step in shown))
    else:
        yield md("No step changed, and none is open beyond the threshold.\n")
    told = [*findings_lines(contender), *unknown_lines(contender)]
    if told:
        yield joined([*(md("- {}", line) for line in told), ""])
    means = list(mean_rows(contender))
    yield md("Geometric means: {}.\n", ", ".join(f"{row[0].text} {row[3].text}" for row in means))
    legends = [legend(contender), *([SPARKLINE_LEGEND] if contender.has_trends else [])]
    lines = [*legends, *basis(comparison, contender)]
    yield md(
        "<details><summary>All steps, and what the numbers rest on</summary>\n\n{}\n{}\n\n</details>\n",
        _table(heads(contender), rows(contender)),
        joined(md("- {}", line) for line in lines),
    )


def _is_worth_showing(step: StepComparison) -> bool:
    """Return whether it changed, has a finding, or is open or without a verdict beyond the threshold."""
    verdict = step.judged.verdict
    if step.findings:
        return True
    if verdict is not None and TRAITS[verdict].is_open:
        return abs((step.judged.value or 1) - 1) > step.judged.threshold
    return verdict is None or TRAITS[verdict].tone is not Tone.QUIET


def _table(heads_: Sequence[str], body: Iterable[Row]) -> Markdown:
    return joined([columns(heads_, LEFT), *map(table_row, body), ""])
