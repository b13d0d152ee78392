"""What the compiling machine brings along."""

import re

import pytest

from build import host


@pytest.fixture(autouse=True)
def ask_again() -> None:
    host.compiler.cache_clear()


def test_the_compiler_names_itself() -> None:
    compiler = host.compiler()
    assert compiler.command == "gcc"
    assert re.search(r"version \d+\.\d+", compiler.version)
    assert compiler.target.count("-") >= 2


def test_a_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(host.HostError, match=r"'no-such-compiler' is missing") as caught:
        host.compiler()
    assert "apt-get install gcc" in caught.value.hint


def test_what_is_no_compiler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "true")
    with pytest.raises(host.HostError, match="prints no version or no target"):
        host.compiler()


def test_ccache_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_NO_CCACHE", "1")
    assert host.ccache_program() is None


def test_the_c_library_has_a_version() -> None:
    assert re.fullmatch(r"\d+(\.\d+)*", host.glibc_version())
    assert host.architecture()
    assert host.os_name()
    assert host.cores() >= 1
