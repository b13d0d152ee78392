"""Facts as metrics in Prometheus' text format, and the file from which its node exporter collects them."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from build.files import make_folder, write_atomically
from build.home import Home
from history.errors import HistoryError
from history.store.writer import Store
from history.timestamps import now
from runners.monitoring.facts import ServiceFacts, box_facts, renewed
from runners.monitoring.families import FAMILIES
from runners.nightly.plan import Plan

LONGEST_LABEL = 200
"""The most characters of the value of a label."""


def prometheus_text(facts: ServiceFacts) -> str:
    """Return the metrics of a box in Prometheus' text format, ending with a line end."""
    # Importing it takes a tenth of a second, which only commands of the service need.
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector

    class Facts(Collector):
        """Hands the families to a registry of our own, which has nothing else."""

        def collect(self) -> Iterable[GaugeMetricFamily]:
            for family in FAMILIES:
                found = GaugeMetricFamily(family.name, family.help, labels=("box", *family.labels))
                for labels, value in family.read(facts):
                    found.add_metric([_label(text) for text in (facts.box, *labels)], value)
                if found.samples:
                    yield found

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Facts())
    return generate_latest(registry).decode()


def _label(text: str) -> str:
    """Return a text as the value of a label: half a character is no text in UTF-8."""
    return text[:LONGEST_LABEL].encode("utf-8", "replace").decode()


class MetricsFile:
    """The file of a box with its metrics, which a plan names; without one nothing is written.

    What goes wrong is kept as the `problem`, and raises nothing: no night ends because of it.
    """

    def __init__(self, plan: Plan, box: str, home: Home) -> None:
        self._plan, self._box, self._home = plan, box, home
        named = plan.metrics.file
        self._path = home.path / named if named else None
        self._facts: ServiceFacts | None = None
        self.problem = ""
        """Why the file could not be written the last time; empty if it could."""

    def write(self, store: Store | None) -> None:
        """Write all facts. What only the history knows is left out without a store, or while it is away."""
        if self._path is None:
            return
        with ExitStack() as stack:
            connection = None
            try:
                if store is not None and not store.away:
                    connection = stack.enter_context(store.database.reading())
                self._facts = box_facts(self._plan, self._box, self._home, now(), connection)
            except HistoryError as error:
                self.problem = f"the metrics could not be written: {error}"
                return
        self._replace(self._path, self._facts)

    def renew(self) -> None:
        """Write what takes milliseconds to read anew, beside the other facts of the last time.

        It is called while sessions run: neither the history nor folders are read, and nothing is flushed.
        """
        if self._path is not None and self._facts is not None:
            self._facts = renewed(self._facts, self._home, now())
            self._replace(self._path, self._facts)

    def _replace(self, path: Path, facts: ServiceFacts) -> None:
        try:
            make_folder(path.parent)
            write_atomically(path, prometheus_text(facts), flush=False)
            self.problem = ""
        except OSError as error:
            self.problem = f"the metrics could not be written: {path}: {error.strerror or error}"
