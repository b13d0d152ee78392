"""Figures with their targets, and the exit code for a list of them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured value and its target; without bounds, it is only shown."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the value is within its bounds."""
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)


def report(figures: Sequence[Figure]) -> int:
    """Print the figures with their targets; return 0 if all are met, else 1."""
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        bounds = [f">= {figure.at_least:g}"] if figure.at_least is not None else []
        bounds += [f"<= {figure.at_most:g}"] if figure.at_most is not None else []
        verdict = ("met" if figure.met else "MISSED") if bounds else "shown"
        value = f"{figure.value:10.4f} {figure.unit}"
        note = " ".join(figure.note.split())  # an error has lines of its own for where it is and what to do
        print(
            f"{figure.name:<{width}}  {value:<22} target {' and '.join(bounds):<8} {verdict}  {note}",
            flush=True,
        )
    return 0 if all(figure.met for figure in figures) else 1
