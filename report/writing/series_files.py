"""The files of the series explorer: of each step, one of the latest month and one of all nights before it.

A browser takes some 3 ms for each script that it loads from disk, so a series has two files, however many
nights it has. Each line of a file is a period. A further night renews the latest file alone; a period that is
over moves to the next file as it is, without being read from the history again.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from history.store.records import Environment
from report import addresses
from report.values.catalog import Catalog, NightEntry, PlaceNights
from report.writing.series_data import StepSeries, call, files_of, periods_of, shards, step_series
from report.writing.session_files import intervals_of
from report.writing.tree import SiteTree


@dataclass(frozen=True)
class SeriesFiles:
    """Writes the files of environments into a site."""

    connection: Connection
    catalog: Catalog
    tree: SiteTree
    prefix: str
    """What the signature of every source begins with."""

    def write(self, nights: PlaceNights) -> None:
        """Write the files of an environment, or keep those whose nights are as they were."""
        steps = step_series(self.connection, nights.place)
        periods = periods_of(nights)
        signatures = {period: self._signature(of_period) for period, of_period in periods.items()}
        names = files_of(list(periods))
        old = {name: self._old(nights.place, name) for name in names}
        for place, (name, file_periods) in enumerate(names.items()):
            state = addresses.digest(*(f"{period} {signatures[period]}" for period in file_periods))
            with self.tree.made_of(self._source(nights.place, name), state) as fresh:
                if not fresh:
                    continue
                # Files are written from the oldest on: those from this one on still have their old lines.
                sources = [other for other in list(names)[place:] if old[other]]
                kept = {
                    period: other
                    for other in sources
                    for period in file_periods
                    if old[other].get(period) == signatures[period]
                }
                read = {period: periods[period] for period in file_periods if period not in kept}
                self._write_file(
                    nights.place, name, file_periods, steps, kept, self._read(nights.place, steps, read)
                )
                self.tree.remember({period: signatures[period] for period in file_periods})

    def _signature(self, nights: Sequence[NightEntry]) -> str:
        intervals = [intervals_of(self.tree, night.uid) for night in nights]
        states = [self.catalog.by_id[night.session_id].state for night in nights]
        return addresses.digest(
            self.prefix, *(night.uid for night in nights), *states, json.dumps(intervals, sort_keys=True)
        )

    def _source(self, place: Environment, name: str) -> str:
        public = self.catalog.clearance.place(place)
        return f"series {public.box} {public.suite} {public.configuration} {name}"

    def _old(self, place: Environment, name: str) -> Mapping[str, str]:
        """Return the signatures of the periods in a file of the old site; none where it has no such file."""
        value = self.tree.value_before(self._source(place, name))
        return value if isinstance(value, dict) else {}

    def _read(
        self, place: Environment, steps: StepSeries, periods: Mapping[str, Sequence[NightEntry]]
    ) -> Mapping[str, Mapping[str, str]]:
        """Return the lines of periods from the history, by step and period."""
        lines: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for period, nights in periods.items():
            intervals = [intervals_of(self.tree, night.uid) for night in nights]
            for shard in shards(self.connection, self.catalog, place, steps, nights, intervals):
                key = self._path(place, shard.step, period)
                lines[shard.step][period] = call("shard", key, shard.content)
        return lines

    def _write_file(
        self,
        place: Environment,
        name: str,
        periods: Sequence[str],
        steps: StepSeries,
        kept: Mapping[str, str],
        read: Mapping[str, Mapping[str, str]],
    ) -> None:
        for step in steps:
            old = {other: self._lines(place, step, other) for other in set(kept.values())}
            lines = [
                line
                for period in periods
                if (
                    line := old[kept[period]].get(period, "")
                    if period in kept
                    else read[step].get(period, "")
                )
            ]
            if lines:
                self.tree.write(f"{self._path(place, step, name)}.js", "".join(lines))

    def _lines(self, place: Environment, step: str, name: str) -> Mapping[str, str]:
        """Return the lines of an old file by period."""
        return dict(self._parsed(place, step, self.tree.text_of(f"{self._path(place, step, name)}.js")))

    def _parsed(self, place: Environment, step: str, text: str) -> Iterator[tuple[str, str]]:
        begin = call("shard", self._path(place, step, "")).removesuffix('");\n')
        for line in text.splitlines(keepends=True):
            if line.startswith(begin):
                yield line.removeprefix(begin).partition('"')[0], line

    def _path(self, place: Environment, step: str, name: str) -> str:
        public = self.catalog.clearance.place(place)
        return addresses.shard(public.box, public.suite, public.configuration, step, name)
