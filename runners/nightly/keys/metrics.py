"""What a plan says of the metrics of the service, which Prometheus collects."""

from pydantic import field_validator

from runners.nightly.keys.tracked import PlanPart

SUFFIX = ".prom"
"""The end of the names of files that Prometheus' node exporter collects."""


class MetricsPlan(PlanPart):
    """Where each box writes its metrics."""

    file: str | None = None
    """The path of the file, relative to Tidemark's output folder; None to write none."""

    @field_validator("file")
    @classmethod
    def _collected(cls, value: str | None) -> str | None:
        if value is not None and not (value.isprintable() and value.endswith(SUFFIX)):
            raise ValueError(f"{value!r} does not end in {SUFFIX}: the node exporter would not collect it")
        return value
