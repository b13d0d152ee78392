"""How often verdicts are wrong, how often a slow-down is seen, and after how many rounds."""

from benchmarks.figures import report
from benchmarks.simulated_verdicts import simulated_figures


def main() -> int:
    """Print the figures beside their targets; 0 when all are met, else 1."""
    return report(simulated_figures())
