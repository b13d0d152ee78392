"""Units, versions and moments as other people write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.version import Engine, Version, parse_version
from history.timestamps import moment_of
from history.transfer.foreign.cells import factor
from history.transfer.foreign.version_names import UnknownEngineError, rest_of, version_of
from suites.metrics import METRICS


@pytest.mark.parametrize(
    ("metric", "unit", "wanted"),
    [
        ("qps", "qps", 1),
        ("qps", "ops/sec", 1),
        ("latency_p99_ms", "s", 1000),
        ("latency_p99_ms", "µs", 1e-3),
        ("latency_p99_ms", "us", 1e-3),
        ("reset_seconds", "min", 60),
        ("server_cpu_us_per_op", "ms/op", 1000),
        ("server_cpu_us_per_op", "us/query", 1),
        ("server_written_kb_per_op", "KB/query", 1),
        ("server_written_kb_per_op", "bytes/q", 1 / 1024),
        ("wal_bytes_per_op", "KiB/op", 1024),
        ("table_bytes", "GiB", 1024**3),
        ("qps_cv", "%", 0.01),
        ("machine_cs_per_op", "cs/o" + "p", 1),
    ],
)
def test_units_with_a_known_factor(metric: str, unit: str, wanted: float) -> None:
    assert factor(METRICS[metric], unit) == pytest.approx(wanted)


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_knows_its_own_unit_and_no_other_kind(metric: str) -> None:
    assert factor(METRICS[metric], METRICS[metric].unit) == 1
    for unit in ("", "furlongs", "s/page", "bytes/s", "/", "ms/ms"):
        with pytest.raises(ValueError, match="unknown unit"):
            factor(METRICS[metric], unit)


@pytest.mark.parametrize(
    ("text", "version", "rest"),
    [
        ("x.pg1222_o2nofp.x10a_c32r128.pk1", "postgres@12.22", "o2nofp.x10a_c32r128.pk1"),
        ("pg177", "postgres@17.7", ""),
        ("pg1010", "postgres@10.10", ""),
        ("my5651_rel", "mysql@5.6.51", "rel"),
        ("my8045_rel.z11a", "mysql@8.0.45", "rel.z11a"),
        ("my848", "mysql@8.4.8", ""),
        ("my970", "mysql@9.7.0", ""),
        ("ma110806", "mariadb@11.8.6", ""),
        (
            "x.ma100230_rel_withdbg.z12a_c32r128.pk1",
            "mariadb@10.2.30",
            "rel_withdbg.z12a_c32r128.pk1",
        ),
        ("MySQL 8.0.36", "mysql@8.0.36", ""),
        ("mysql-8.0.36", "mysql@8.0.36", ""),
        ("PostgreSQL 18.6 (Debian 18.6-1)", "postgres@18.6", ""),
        ("mariadb_11.8.6", "mariadb@11.8.6", ""),
        ("postgres 18beta1", "postgres@REL_18_BETA1", ""),
        ("postgres@18beta1#mine", "postgres@REL_18_BETA1#mine", ""),
        ("postgres@19devel", "postgres@19devel", ""),
        ("postgres@REL_18_STABLE", "postgres@REL_18_STABLE", ""),
        ("postgres@18.1#mine", "postgres@18.1#mine", ""),
    ],
)
def test_short_names(text: str, version: str, rest: str) -> None:
    assert str(version_of(text)) == version
    assert rest_of(text) == rest


@pytest.mark.parametrize(
    "text",
    ["", "pg", "pg17", "pg9624", "pg0912", "my57", "ma1011", "pg17.7", "xpg177", "MySQL", "mysql 8.0.36-28"],
)
def test_names_that_say_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="version"):
        version_of(text)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("fbmy8032_rel", "fbmy8032_rel"),
        ("x.pg_oriole_patches17_5_o2nofp", "x.pg_oriole_patches17_5_o2nofp"),
        ("oracle@19", "oracle@19"),
    ],
)
def test_versions_of_other_engines(text: str, version: str) -> None:
    with pytest.raises(UnknownEngineError, match="an engine that this Tidemark does not know") as unknown:
        version_of(text)
    assert unknown.value.version == version


@pytest.mark.parametrize("text", ["ma1011", "ma1002301", "pg96241x", "postgers@17.7", "postgresql@18"])
def test_a_mistake_in_a_version_is_no_other_engine(text: str) -> None:
    with pytest.raises(ValueError, match=r"version|unknown engine") as refused:
        version_of(text)
    assert not isinstance(refused.value, UnknownEngineError)


@given(st.integers(10, 89), st.integers(0, 99))
def test_every_postgres_release_has_a_short_name(major: int, minor: int) -> None:
    assert version_of(f"pg{major}{minor}") == Version(Engine.POSTGRES, f"{major}.{minor}")


@given(st.text())
def test_any_text_is_a_version_or_a_value_error(text: str) -> None:
    try:
        found = version_of(text)
    except ValueError:
        return
    assert parse_version(str(found)) == found


@given(st.text() | st.from_regex(r"\d{4}-\d{2}(-\d{2})?", fullmatch=True))
def test_any_text_is_a_moment_or_a_value_error(text: str) -> None:
    try:
        found = moment_of(text)
    except ValueError:
        return
    assert found.utcoffset() == timedelta(0)


def test_moments() -> None:
    assert moment_of("2025-11") == datetime(2025, 11, 1, tzinfo=UTC)
    assert moment_of("2025-11-05") == datetime(2025, 11, 5, tzinfo=UTC)
    assert moment_of("2025-11-05T02:00:00") == datetime(2025, 11, 5, 2, tzinfo=UTC)
    east = timezone(timedelta(hours=1))
    assert moment_of("2025-11-05T02:00:00+01:00") == datetime(2025, 11, 5, 2, tzinfo=east)
