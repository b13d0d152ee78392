"""A comparison as the body of an issue or of a job summary: a sentence, what changed, and the rest folded."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from history.comparison.result import Comparison, ContenderComparison, StepComparison
from history.comparison.verdict import TRAITS, Tone
from history.rendering.escaping import escaped
from history.rendering.notes import notes
from history.rendering.numbers import bounds, two_decimals
from history.rendering.sparkline import SPARKLINE_LEGEND
from history.rendering.table import (
    LEFT,
    Cell,
    Row,
    heads,
    legend,
    mean_rows,
    rows,
    step_row,
    title,
)
from suites.metrics import Better

MOST_CHARACTERS = 65_000
"""GitHub takes 65,536 in an issue; a few are left for what others put around it."""

CUT = "\n\n*Cut here: GitHub takes no more. `--format markdown` or `--format json` have all of it.*\n"


def render_summary(comparison: Comparison) -> str:
    """At most MOST_CHARACTERS of Markdown. Whatever is cut, the sentences of all contenders are there."""
    blocks = [list(_blocks(comparison, each)) for each in comparison.contenders]
    # By importance: every contender's sentence and changes before anyone's complete table and notes.
    whole = "\n".join(block for each in blocks for block in each)
    if len(whole) <= MOST_CHARACTERS:
        return whole
    short = "\n".join(block for each in blocks for block in each[:-1])
    return _cut(short, MOST_CHARACTERS - len(CUT)) + CUT


def sentence(comparison: Comparison, contender: ContenderComparison) -> str:
    """What a person needs to know: how many steps came out how, and the worst one."""
    counts = Counter(step.judgement.verdict for step in contender.steps)
    said = [
        f"{counts[verdict]} {verdict if counts[verdict] == 1 else traits.plural}"
        for verdict, traits in TRAITS.items()
    ]
    if counts[None]:
        said.append(f"{counts[None]} without a verdict")
    worst = _worst(comparison, contender.steps)
    tail = f"; worst: {escaped(worst.step)} {_ratio_text(worst)}" if worst is not None else ""
    return f"{escaped(title(comparison, contender))}: {', '.join(said)}{tail}."


def _ratio_text(step: StepComparison) -> str:
    return f"{two_decimals(step.judged.value)} ({bounds(step.judgement.interval)})"


def _worst(comparison: Comparison, steps: Sequence[StepComparison]) -> StepComparison | None:
    """The worst regression; without one the step furthest on the bad side that is inconclusive."""
    severe = [verdict for verdict, traits in TRAITS.items() if traits.severity]
    for verdict in sorted(severe, key=lambda verdict: -TRAITS[verdict].severity):
        found = [step for step in steps if step.judgement.verdict is verdict and step.judged.value]
        if found:
            higher = comparison.metric.better is Better.HIGHER
            return min(found, key=lambda step: (step.judged.value or 1) * (1 if higher else -1))
    return None


def _blocks(comparison: Comparison, contender: ContenderComparison) -> Iterator[str]:
    yield f"**{sentence(comparison, contender)}**\n"
    shown = [step for step in contender.steps if _is_worth_showing(comparison, step)]
    if shown:
        yield _table(heads(contender), (step_row(contender, step) for step in shown))
    else:
        yield "No step changed, and none is open beyond the threshold.\n"
    means = list(mean_rows(contender))
    yield "Geometric means: " + ", ".join(f"{row[0].text} {row[3].text}" for row in means) + ".\n"
    legends = [legend(contender), *([SPARKLINE_LEGEND] if contender.has_trends else [])]
    lines = [*legends, *notes(comparison, contender)]
    yield (
        "<details><summary>All steps, and what the numbers rest on</summary>\n\n"
        + _table(heads(contender), rows(contender))
        + "\n"
        + "\n".join(f"- {escaped(line)}" for line in lines)
        + "\n\n</details>\n"
    )


def _is_worth_showing(comparison: Comparison, step: StepComparison) -> bool:
    """Whether it changed, has no verdict, or is open with an estimate beyond the threshold."""
    verdict = step.judgement.verdict
    if verdict is not None and TRAITS[verdict].is_open:
        return abs((step.judged.value or 1) - 1) > comparison.options.threshold_percent / 100
    return verdict is None or TRAITS[verdict].tone is not Tone.QUIET


def _table(columns: Sequence[str], body: Iterable[Row]) -> str:
    lines = [_line(columns), _line([":--" if head in LEFT else "--:" for head in columns])]
    for row in body:
        *cells, last = (escaped(cell.text) + cell.mark for cell in row)
        lines.append(_line([*cells, f"**{last}**" if _is_bad(row[-1]) else last]))
    return "\n".join(lines) + "\n"


def _is_bad(cell: Cell) -> bool:
    return cell.tone is Tone.BAD


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cut(text: str, most: int) -> str:
    """Whole lines of the text, as many as fit."""
    return text if len(text) <= most else text[: text.rindex("\n", 0, most)]
