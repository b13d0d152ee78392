"""A comparison as the body of an issue or a job summary: a sentence, what changed, and the rest collapsed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from build.version import Version
from history.comparison.result import Comparison, ContenderComparison, StepComparison
from history.comparison.verdict import TRAITS, Tone
from history.escaping.markdown import Markdown, columns, cut, joined, md
from history.rendering.markdown import table_row
from history.rendering.notes import basis, told
from history.rendering.sparkline import SPARKLINE_LEGEND
from history.rendering.table import (
    LEFT,
    NO_NAMES,
    Row,
    heads,
    legend,
    mean_rows,
    outcome,
    rows,
    step_row,
    title,
)

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
    return f"{title(comparison, contender, names)}: {outcome(contender)}"


def _blocks(
    comparison: Comparison, contender: ContenderComparison, names: Mapping[Version, str]
) -> Iterator[Markdown]:
    yield md("**{}**\n", sentence(comparison, contender, names))
    shown = [step for step in contender.steps if _is_worth_showing(step)]
    if shown:
        yield _table(heads(contender), (step_row(contender, step) for step in shown))
    else:
        yield md("No step changed for certain, and no estimate is beyond the threshold.\n")
    said = told(contender)
    if said:
        yield joined([*(md("- {}", line) for line in said), ""])
    means = list(mean_rows(contender))
    yield md("Geometric means: {}.\n", ", ".join(f"{row[0].text} {row[3].text}" for row in means))
    legends = [*legend(contender), *([SPARKLINE_LEGEND] if contender.has_trends else [])]
    lines = basis(comparison, contender, legends)
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
