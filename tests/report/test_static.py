"""What lies in the site as it is: uPlot as npm has it, and own scripts with types that fit."""

import hashlib
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from report.writing.site import STATIC
from tests.programs import TYPESCRIPT, required_package, required_tool

OWN = sorted(STATIC.glob("*.js"))


def test_vendored_files_are_those_of_the_package() -> None:
    vendored = tomllib.loads((STATIC / "uplot/vendored.toml").read_text())
    files = {path.name for path in (STATIC / "uplot").iterdir()} - {"vendored.toml"}
    assert files == vendored["sha256"].keys()
    for name, digest in vendored["sha256"].items():
        assert hashlib.sha256((STATIC / "uplot" / name).read_bytes()).hexdigest() == digest
    assert f"(v{vendored['version']})" in (STATIC / "uplot/uPlot.iife.min.js").read_text()[:200]


@pytest.mark.parametrize("script", OWN, ids=lambda path: path.name)
def test_own_scripts_make_text_only_and_ask_nobody(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|fetch\(|XMLHttp|https?://(?!www\.w3\.org)",
        text,
    )


def test_types_of_own_scripts(tmp_path: Path) -> None:
    package = required_package(TYPESCRIPT)
    node = required_tool("node")
    (tmp_path / "uplot.d.ts").write_text("declare const uPlot: any;\n")
    compiler = package.parent / "bin/tsc"
    options = [
        "--noEmit",
        "--allowJs",
        "--checkJs",
        "--strict",
        "--target",
        "es2022",
        "--lib",
        "es2022,dom,dom.iterable",
        "--types",
        "",
    ]
    done = subprocess.run(
        [node, str(compiler), *options, str(tmp_path / "uplot.d.ts"), *map(str, OWN)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
