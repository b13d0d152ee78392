"""What a comparison told for the worse: in JSON, and in the text that people read."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.kinds.catalogue import Attempt
from history.comparison.finding import Bearing
from history.comparison.query_time import OF_CPU
from history.comparison.verdict import Verdict
from history.metric_words import label_of
from history.numbers import signed_percent

WORSE = 1
"""The exit code of compare and try for a step that is worse."""

MARKS = re.compile(r"[\s\\|*`\u200b-\u200d]+")
"""What a table, Markdown or the end of a line puts between words, and what Markdown puts into words that it
would make links of."""


@dataclass(frozen=True)
class ToldDifference:
    """A difference for the worse that a comparison told."""

    step: str
    metric: str
    """The metric; empty for what has none, such as a failure."""

    text: str

    @property
    def line(self) -> str:
        """The difference in one line: what `told` of kinds.toml is searched in."""
        return f"{self.step}: {self.metric or 'no metric'}: {self.text}"

    def is_printed(self, printed: str) -> bool:
        """Whether people read it too, whatever table or list it is in."""
        plain = MARKS.sub("", printed)
        return MARKS.sub("", self.text) in plain and MARKS.sub("", self.step) in plain


def told_worse(comparison: Mapping[str, Any]) -> Iterator[ToldDifference]:
    """Yield the regressions, what explains them, and the findings for the worse of a comparison in JSON.

    What else is told of a step that is worse, such as another plan, says why, and counts as well.
    """
    for contender in comparison["contenders"]:
        for step in contender["steps"]:
            if step["verdict"] == Verdict.REGRESSION:
                yield ToldDifference(step["step"], comparison["metric"], str(Verdict.REGRESSION))
                yield from _explanations(step)
            bearings = {finding["bearing"] for finding in step["findings"]}
            is_worse = step["verdict"] == Verdict.REGRESSION or Bearing.WORSE in bearings
            for finding in step["findings"]:
                if finding["bearing"] == Bearing.WORSE or (is_worse and finding["bearing"] == Bearing.TOLD):
                    yield ToldDifference(step["step"], finding["metric"], finding["text"])


def _explanations(step: Mapping[str, Any]) -> Iterator[ToldDifference]:
    """Yield the costs that are told beside a regression because they certainly rose as well.

    What explains nearly all of it has no words but its cell in the first table, `1.25+`.
    """
    explained = (step["query_time"] or {"explained": ()})["explained"]
    for metric in explained:
        ratio = step["metrics"][metric]["ratio"]
        yield ToldDifference(step["step"], metric, f"{label_of(metric)} {signed_percent(ratio - 1)} explains")
        yield ToldDifference(step["step"], metric, f"{ratio:.2f}+")
    others = [metric for metric in step["explained_by"] or () if metric not in OF_CPU]
    for metric in others if step["query_time"] else ():
        yield ToldDifference(step["step"], metric, f"with {', '.join(map(label_of, others))} up")


def missed(attempt: Attempt, exit_code: int, printed: str, told: Sequence[ToldDifference]) -> str:
    """Return what an attempt lacks; empty if it told its kind, or why the kind cannot be seen."""
    pattern = re.compile(attempt.expected, re.IGNORECASE)
    if not attempt.is_seen:
        # The end of a line may stand between two words of the reason.
        return (
            ""
            if pattern.search(" ".join(printed.split()))
            else f"no reason that matches '{attempt.expected}'"
        )
    right = [difference for difference in told if pattern.search(difference.line)]
    if not right:
        others = "; ".join(difference.line for difference in told)
        return f"not told: exit code {exit_code}" + (f", but {others}" if others else "")
    if not any(difference.is_printed(printed) for difference in right):
        return f"only in JSON: {right[0].line}"
    return "" if exit_code == WORSE else f"told, and exit code {exit_code}: {right[0].line}"
