"""Programs that only tests need: compiled once, and their lack is said and is no failure."""

from pathlib import Path

import pytest

from build.home import Home
from tests import programs
from tests.programs import ACT, ProgramError, provide, required_tool


def test_what_is_there_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    ACT.folder(home).mkdir(parents=True)
    (ACT.folder(home) / "act").touch()
    monkeypatch.setenv("PATH", "/nowhere")
    assert provide(ACT, home) == home.tools / f"act-{ACT.version}" / "act"


def test_without_go_or_network_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\ncase $1 in *version) exit 0 ;; esac\necho no such host >&2; exit 1\n")
    go.chmod(0o755)
    monkeypatch.setattr(programs, "GO_FOLDER", tmp_path)
    npm, python = tmp_path / "npm", tmp_path / "python3"
    for program in (npm, python):
        program.write_text(go.read_text())
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    programs.main()
    assert capsys.readouterr().err.count("no such host") == 6
    for program in (go, npm, python):
        program.write_text("#!/bin/sh\necho no toolchain >&2; exit 1\n")
    programs.main()
    assert (
        capsys.readouterr().err.count("does not work: no toolchain\n  the tests that need it are skipped")
        == 6
    )
    with pytest.raises(pytest.skip.Exception, match="npm does not work: no toolchain"):
        required_tool("npm")
    go.unlink()
    with pytest.raises(ProgramError, match="act needs Go"):
        provide(ACT, Home(tmp_path))
