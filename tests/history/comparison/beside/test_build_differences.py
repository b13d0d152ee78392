"""What is said of two builds that were compiled differently, where one is an install prefix."""

from dataclasses import replace
from pathlib import Path

from history.comparison.beside.build_differences import build_differences
from history.comparison.compare import compare
from history.open import open_store
from history.rendering.notes import notes
from history.store.records import SessionStatus
from tests.history.handmade import NIGHT, run_record, session_start
from tests.manifests import a_manifest

CONFIGURE = "'--prefix=/opt/a' '--with-lz4' 'CFLAGS=-O2' '--with-extra-version= (Mine)'"
A = {
    "compiler": {"version": "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"},
    "recipe": {"configure": CONFIGURE, "cflags": "-Wall -O2", "says": "postgres (PostgreSQL) 18.6"},
}
B = {
    "compiler": {"version": "Debian clang version 14.0.6"},
    "recipe": {"configure": "'--prefix=/opt/b' '--with-lz4' '--enable-cassert'", "cflags": "-Wall -O3"},
}
HERE = {
    "compiler": {"version": "gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)"},
    "recipe": {
        "stages": [{"name": "configure", "command": ["./configure", "CC={compiler}", "CFLAGS=-O2 -g"]}]
    },
}


def test_compiler_flags_and_options_are_compared() -> None:
    assert build_differences(A, B) == [
        "compiled differently: compiler GCC: (Debian 12.2.0-14+deb12u1) 12.2.0 (base), Debian clang version "
        "14.0.6 (new)",
        "compiled differently: CFLAGS -O2 (base), -O3 (new)",
        "compiled differently: --with-extra-version= (Mine) only of the base",
        "compiled differently: --enable-cassert only of the new",
    ]
    assert build_differences(A, A) == []
    assert build_differences(A, {"recipe": {"info_bin": 7}, "compiler": None}) == []


def test_a_build_of_tidemark_has_the_same_compiler_under_another_name() -> None:
    assert build_differences(A, HERE) == [
        "compiled differently: CFLAGS without these (base), -g (new)",
        "compiled differently: --with-lz4, --with-extra-version= (Mine) only of the base",
    ]


def test_the_build_info_of_mysql_is_read() -> None:
    old = "CXX_FLAGS = -O2 -g\nWITH_LZ4:STRING=bundled\nBuild was run at today\n"
    new = old.replace("bundled", "system")
    assert build_differences({"recipe": {"info_bin": old}}, {"recipe": {"info_bin": new}}) == [
        "compiled differently: WITH_LZ4=bundled only of the base",
        "compiled differently: WITH_LZ4=system only of the new",
    ]


def test_a_comparison_says_it_of_prefixes_alone(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(session_start())
        for name, manifest in (("a=0123456789ab", A), ("b=0123456789ac", B), ("18.5", HERE), ("18.6", B)):
            record = run_record({"qps": 1000.0}, version=f"postgres@{name}", position=1)
            build = replace(record.build, manifest=a_manifest(**manifest))
            store.record_run(session, replace(record, build=build))
        store.finish_session(session, SessionStatus.FINISHED)
        versions = [replace(record.build.version, ref=ref) for ref in ("a", "b", "18.5", "18.6")]
        prefixes = compare(store, versions[0], versions[1:2])
        compiled = compare(store, versions[2], versions[3:])
    (contender,) = prefixes.contenders
    assert build_differences(A, B)[0] in notes(prefixes, contender)
    assert not any("compiled differently" in note for note in notes(compiled, compiled.contenders[0]))
