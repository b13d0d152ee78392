"""What is printed to measure a session again, parsed as the command line parses it."""

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from build.errors import TidemarkError
from build.relink import LINKER
from build.version import Engine
from history.changes.level_shift import Course
from history.rendering.commands import COUNTED, DECIDED, change_search, run_again
from history.series.night import configuration_name
from history.store.records import Machine, Session, SessionStatus
from history.store.session_writes import json_text
from runners.bisect.requests import parse_request
from runners.cli import parser
from runners.commands import calibrate, run
from runners.measuring.request import Exact, Request
from runners.measuring.session_description import describe_session
from suites.counting.tool import Callgrind
from suites.profiling.perf import Perf
from suites.profiling.profiler import Profiling
from suites.sizing import Hardware, sizes

MACHINE = Machine("0", "db1", "A processor", 4, 2**34, "6.1", "Debian 13")
CALLGRIND = Callgrind("valgrind", "valgrind-3.24.0")


def request_of(words: Sequence[str]) -> Request:
    """Return what the real parser, and the command after it, make of words."""
    arguments = parser().parse_args(list(words))
    if arguments.command == "calibrate":
        return calibrate.request_of(arguments)
    return run.request_of(arguments)


def stored(request: Request) -> Session:
    """Return the session of a request as the history keeps it."""
    perf = None if request.perf is None else Profiling(Perf("perf", "cycles"), 2, 1)
    counting = CALLGRIND if request.passes else None
    start = describe_session(
        request,
        "uid",
        sizes(request.suite, request.profile, Hardware(4, 2**34), request.steps),
        "sysbench",
        {},
        MACHINE,
        perf,
        counting,
    )
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return Session(
        **{name: getattr(start, name) for name in start.__dataclass_fields__},
        id=1,
        status=SessionStatus.FINISHED,
        started_at=at,
        ended_at=at,
    )


def asked(request: Request) -> dict[str, object]:
    """Return what a request asks for, without how it is asked for."""
    return {
        "versions": request.versions,
        "suite": request.suite.name,
        "profile": request.profile,
        "steps": request.steps,
        "rounds": (request.least_rounds, request.most_rounds, request.until_decided),
        "perf": request.perf,
        "passes": request.passes,
        "only": request.exact is Exact.ONLY,
        "durability": request.durability,
        "layouts": request.layouts,
        "variants": {name: variant.to_json() for name, variant in request.variants.items()},
    }


def printed(session: Session, request: Request) -> list[str]:
    """Return the words that are printed to measure a session again, without the program."""
    *comments, line = run_again(session, steps=[step.name for step in request.steps])
    assert all(comment.startswith("# ") for comment in comments)
    program, *words = shlex.split(line)
    assert program == "./tidemark"
    return words


PLAIN = "postgres@18.6"
PATCHES = ("fix.patch", "it's a fix.patch")
TEXT = st.text("abz09 _.'\"$;&|<>()*?~!#%\\=:/-", min_size=1, max_size=12).map(str.split).map(" ".join)


@st.composite
def definitions(draw: st.DrawFn, name: str) -> list[str]:
    """Draw the options that define the variant called `name`, or what every version gets."""
    of, words = f"{name}:" if name else "", []
    if value := draw(TEXT):
        words += ["--with", f"{of}setting.application_name={value}"]
    if flags := draw(st.sampled_from(["", "-O3", "-O3 -g"])):
        words += ["--with", f"{of}build.CFLAGS={flags}"]
    for option in draw(st.sets(st.sampled_from(["--with-llvm", "--enable-nls=de"]))):
        words += ["--with", f"{of}build.configure={option}"]
    if draw(st.booleans()):
        words += ["--with", f"{of}index=sbtest*(id) INCLUDE (c, pad)"]
    if name:
        for file in draw(st.sets(st.sampled_from(PATCHES))):
            words += ["--with", f"{of}patch={file}"]
    return words


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Draw a command line of `run`, most of which are accepted."""
    suite = draw(st.sampled_from(["write-heavy", "write-heavy", "oltp-sweep", "connections"]))
    words = ["--suite", suite, "--profile", draw(st.sampled_from(["smoke", "short", "io"]))]
    if suite == "write-heavy":
        chosen = draw(st.sets(st.sampled_from(["insert", "delete", "update-index@3"])))
        words += [word for step in chosen for word in ("--step", step)]
    for option, values in (
        ("--clients", ["1", "2,8"]),
        ("--seconds", ["7.5"]),
        ("--durability", ["full"]),
        ("--repetitions", ["1", "5"]),
        ("--mode", ["long", "rounds"]),
        ("--memory", ["1.5G"]),
        ("--disk", ["2000iops", "1.5MiB/s,500iops"]),
    ):
        value = draw(st.sampled_from(["", *values]))
        words += [option, value] if value else []
    words += [draw(st.sampled_from(["--until-decided", "--exact-only", "--no-exact", "--keep-disturbed"]))]
    words += draw(st.sampled_from([[], [], ["--perf"], ["--perf-during"]]))
    names = [PLAIN, "postgres@17.11", "mariadb@11.8.6", "postgres@git:5bf748b86b"][: draw(st.integers(1, 4))]
    words += draw(definitions(""))
    for name in draw(st.sets(st.sampled_from(["mem", "b-2"]))):
        names.append(f"{PLAIN}#{name}")
        words += [*draw(definitions(name)), "--with", f"{name}:setting.work_mem={len(names)}MB"]
    return ["run", *words, *(["--alone"] if len(names) == 1 else []), *names]


@pytest.fixture
def in_folder_with_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where the patches are, as the comment above a command says."""
    for name in PATCHES:
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.deep("hundreds of sessions that hypothesis draws")
@pytest.mark.usefixtures("in_folder_with_patches")
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(command_lines())
def test_what_is_printed_asks_for_the_same_again(words: list[str]) -> None:
    try:
        request = request_of(words)
    except TidemarkError:
        reject()
    session = stored(request)
    again = request_of(printed(session, request))
    assert asked(again) == asked(request)
    # What is measured to confirm is the same but for its rounds and counts.
    for how in (DECIDED, COUNTED):
        first = [str(version) for version in request.versions[:2]]
        *_, line = run_again(session, first, [request.steps[0].name], how)
        if how == DECIDED or not request.steps[0].clients:
            other = request_of(shlex.split(line)[1:])
            assert [str(version) for version in other.versions] == first
            assert other.steps == request.steps[:1]
            assert other.settings_of(other.versions[0]) == request.settings_of(request.versions[0])


@pytest.mark.parametrize(
    "words",
    [
        [PLAIN, "--rounds", "4"],
        [f"{PLAIN}#mem", "--with", "mem:setting.work_mem=8MB", "--profile", "short", "--step", "insert"],
        [PLAIN, "--suite", "oltp-sweep", "--clients", "4,16", "--with", "build.CFLAGS=-O3"],
        [PLAIN, "--memory", "2G", "--disk", "100MB/s"],
    ],
)
def test_a_calibration_is_one_again(words: list[str]) -> None:
    request = request_of(["calibrate", *words])
    again = printed(stored(request), request)
    assert again[0] == "calibrate"
    assert asked(request_of(again)) == asked(request)


def test_what_with_says_continues_the_series_of_the_options_before_it() -> None:
    """The stored options are those of the same request by `--set`, `--build`, `--layer` and so on."""
    every = [
        "setting.work_mem=8MB",
        "build.CFLAGS=-O3",
        "layer.tls=on",
        "initdb.checksums=off",
        "index=t*(c)",
    ]
    own = ["setting.jit=on", "build.configure=--with-llvm", "layer.protocol=simple", "initdb.locale=C"]
    own += ["companion=pgbouncer", "extension.tiny=https://example.org/t@v1", "index=sbtest*(id)"]
    given = [word for text in (*every, *(f"fast:{text}" for text in own)) for word in ("--with", text)]
    session = stored(request_of(["run", *given, PLAIN, f"{PLAIN}#fast"]))
    kept = {
        "settings": {"work_mem": "8MB"},
        "build": {"CFLAGS": "-O3"},
        "layers": {"tls": "on"},
        "initdb": {"checksums": "off"},
        "indexes": ["t*(c)"],
        "variants": {
            "fast": {
                "settings": {"jit": "on"},
                "build": {"configure": ["--with-llvm"]},
                "layers": {"protocol": "simple"},
                "initdb": {"locale": "C"},
                "companions": ["pgbouncer"],
                "extensions": [{"name": "tiny", "repository": "https://example.org/t", "ref": "v1"}],
                "indexes": ["sbtest*(id)"],
            }
        },
    }
    assert {name: session.options[name] for name in kept} == kept
    row = {"options": json_text(session.options), "profile": "smoke", "durability": "relaxed"}
    assert configuration_name(row) == (
        "smoke relaxed 3s work_mem=8MB build CFLAGS=-O3 layer tls=on initdb checksums=off"
    )


@pytest.mark.skipif(shutil.which(LINKER) is None, reason=f"{LINKER} is not installed")
def test_layouts_are_asked_for_again() -> None:
    request = request_of(["run", "--layouts", "8", "--until-decided", PLAIN, "postgres@17.11"])
    assert asked(request_of(printed(stored(request), request))) == asked(request)


@pytest.mark.usefixtures("in_folder_with_patches")
def test_what_is_not_stored_is_said() -> None:
    request = request_of(["run", "--with", "mem:patch=fix.patch", "postgres@master", "postgres@master#mem"])
    session = stored(request)
    assert run_again(session)[:-1] == [
        "# Start it in the folder with fix.patch, as the history does not keep patches.",
        "# Commits that are not upstream's: add --git with their repository.",
    ]
    for change, said in (
        ({"suite": "mine"}, "the suite mine is in a folder of its own, which is not stored"),
        ({"options": {**session.options, "variants": {}}}, "how #mem is defined is not stored"),
        ({"options": {**session.options, "versions": []}}, "its versions are not stored"),
        ({"options": {**session.options, "imported": True}}, "it was imported"),
        ({"profile": "tiny"}, "suite write-heavy has no profile 'tiny'"),
    ):
        assert run_again(replace(session, **change)) == [f"# No command measures this again: {said}."]
    assert run_again(session, steps=["gone"]) == [
        "# No command measures this again: the suite write-heavy has other steps now, or other levels of "
        "clients."
    ]


def test_layers_that_are_no_longer_measured_are_said() -> None:
    """Sessions of an older Tidemark have them, of a variant or of every version."""
    session = stored(request_of(["run", "--with", "fast:layer.tls=on", PLAIN, f"{PLAIN}#fast"]))
    assert "--with fast:layer.tls=on" in run_again(session)[-1]
    listening = {"variants": {"fast": {"layers": {"tls": "on", "listeners": "30"}}}}
    for options, gone in (({"layers": {"auth": "md5"}}, "auth=md5"), (listening, "listeners=30")):
        older = replace(session, options={**session.options, **options})
        said = f"the layer {gone} is no longer measured"
        assert run_again(older) == [f"# No command measures this again: {said}."]
        change = change_between(PLAIN, f"{PLAIN}#fast", options)
        change.change.last_before.version = "postgres@17.11#fast"
        assert change_search(change) == [f"# No command searches for it: {said}."]
    made = {"name": "tiny", "repository": "there", "ref": "b", "commit": "b" * 40}
    variants = {"variants": {"vec-bbbb": {"extensions": [made], "layers": {"auth": "md5"}}}}
    nights = change_between(f"{PLAIN}#vec-aaaa", f"{PLAIN}#vec-bbbb", variants)
    assert change_search(nights) == [
        "# No command searches for it: the layer auth=md5 is no longer measured."
    ]


# --- the search for the commit behind a change


def change_between(before: str, after: str, options: dict[str, Any]) -> Any:
    """What of a report on a change in update-index the command needs."""
    session = stored(request_of(["run", "postgres@17.11", "postgres@18.6"]))
    return SimpleNamespace(
        course=Course.STEP,
        session=replace(session, options={**session.options, **options}),
        change=SimpleNamespace(
            last_before=SimpleNamespace(version=before), first_after=SimpleNamespace(version=after)
        ),
        main_series=SimpleNamespace(key=SimpleNamespace(step="update-index", metric="qps"), ratio=0.9),
        commits=(None, None),
    )


def test_a_change_of_an_extension_over_nights_is_searched_on_its_server(tmp_path: Path) -> None:
    good, bad = "5bf748b86b12", "0123456789ab"
    made = {"name": "tiny", "repository": str(tmp_path), "ref": bad, "commit": bad + "0" * 28}
    variants = {"variants": {f"vec-{bad}": {"extensions": [made], "settings": {"work_mem": "8MB"}}}}
    (line,) = change_search(change_between(f"postgres@18.6#vec-{good}", f"postgres@18.6#vec-{bad}", variants))
    asked = parse_request(parser().parse_args(shlex.split(line)[1:]))
    question = asked.question
    assert (question.server, question.extension, question.engine) == (
        "postgres@18.6",
        "tiny",
        Engine.POSTGRES,
    )
    assert (question.good, question.bad, question.git) == (good, bad, str(tmp_path))
    assert (question.step, question.suite) == ("update-index", "write-heavy")
    assert asked.variant.settings == {"work_mem": "8MB"}
    (said,) = change_search(change_between(f"postgres@18.5#vec-{good}", f"postgres@18.6#vec-{bad}", variants))
    assert said.startswith("# No command searches for it: postgres@18.6#vec-")
