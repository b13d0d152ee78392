"""Programs of other people that tests need, installed once for a home, at these versions.

act and actionlint run and read the workflows, and are compiled with Go. axe-core, vnu and TypeScript check
the report site, and come from npm. Ansible sets up boxes, and comes from PyPI. `./tidemark test` calls this
module. What cannot be installed is said, and its tests are skipped. Gitea, a real tracker, takes long to
compile: only `.venv/bin/python -m tests.programs gitea` does it.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.home import Home, locate
from build.host import why_not
from build.lock import held

GO_FOLDER = Path("/usr/local/go/bin")
"""Where Go's own archive puts it, should it not be on the path."""

LOG_LINES = 5


@dataclass(frozen=True)
class GoProgram:
    """A program that `go install` compiles."""

    name: str
    package: str
    version: str

    def folder(self, home: Home) -> Path:
        """Where it lies in a home."""
        return home.tools / f"{self.name}-{self.version}"

    def find(self, home: Home) -> Path | None:
        """The program, if it is there."""
        path = self.folder(home) / self.name
        return path if path.is_file() else None


ACT = GoProgram("act", "github.com/nektos/act", "v0.2.89")
"""Runs workflows on this machine."""

ACTIONLINT = GoProgram("actionlint", "github.com/rhysd/actionlint/cmd/actionlint", "v1.7.12")
"""Finds mistakes in workflows."""


@dataclass(frozen=True)
class GoServer(GoProgram):
    """A program whose module replaces others: it is compiled in its source, of which it reads files."""

    files: tuple[str, ...] = ()
    """Folders of the source that it reads, which are kept beside it."""


GITEA = GoServer(
    "gitea", "code.gitea.io/gitea", "v1.26.0", ("templates", "options/locale", "options/label", "public")
)
"""A tracker, without the pages that people see."""

GITEA_TAGS = "sqlite,sqlite_unlock_notify"


@dataclass(frozen=True)
class NpmPackage:
    """A package of npm, for tests only."""

    name: str
    version: str
    file: str
    """What is used of it, below its folder."""

    def folder(self, home: Home) -> Path:
        """Where it lies in a home."""
        return home.tools / f"npm-{self.name}-{self.version}"

    def find(self, home: Home) -> Path | None:
        """The file, if it is there."""
        path = self.folder(home) / "node_modules" / self.name / self.file
        return path if path.is_file() else None


AXE = NpmPackage("axe-core", "4.14.1", "axe.min.js")
"""Finds what keeps people from using a page."""

VNU = NpmPackage("vnu-jar", "26.9.27", "build/dist/vnu.jar")
"""The HTML checker of the W3C."""

TYPESCRIPT = NpmPackage("typescript", "7.0.2", "package.json")
"""Checks the types of scripts."""


@dataclass(frozen=True)
class PythonProgram:
    """A program of PyPI, in an environment of its own."""

    name: str
    package: str
    version: str

    def folder(self, home: Home) -> Path:
        """The environment in a home."""
        return home.tools / f"{self.package}-{self.version}"

    def find(self, home: Home) -> Path | None:
        """The program, if it is there."""
        path = self.folder(home) / "bin" / self.name
        return path if path.is_file() else None


ANSIBLE = PythonProgram("ansible-playbook", "ansible-core", "2.19.14")
"""Carries out the role that sets up boxes."""


class ProgramError(TidemarkError):
    """A program could not be compiled or installed."""


def required(program: GoProgram | PythonProgram) -> Path:
    """The program; skips the test where it is not."""
    found = program.find(locate())
    if found is None:
        on_request = f".venv/bin/python -m tests.programs {program.name}"
        how = on_request if isinstance(program, GoServer) else "./tidemark test"
        pytest.skip(f"{program.name} {program.version} is not installed: {how} installs it")
    return found


def required_package(package: NpmPackage) -> Path:
    """The file of a package; skips the test where it is not."""
    found = package.find(locate())
    if found is None:
        pytest.skip(
            f"{package.name} {package.version} is not installed: ./tidemark test installs it with npm"
        )
    return found


def provide_package(package: NpmPackage, home: Home) -> Path:
    """The file of a package; installs it when it is not there. Raises ProgramError."""
    found = package.find(home)
    if found is not None:
        return found
    npm = _working("npm", os.environ.get("PATH", ""), f"{package.name} needs npm to be installed")
    with held(home.tools / f"npm-{package.name}.lock"):
        return package.find(home) or _installed(package, npm, home)


def _installed(package: NpmPackage, npm: str, home: Home) -> Path:
    print(f"tidemark: installing {package.name} {package.version}", file=sys.stderr)
    folder = package.folder(home)
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [
            npm,
            "install",
            "--silent",
            "--ignore-scripts",
            "--prefix",
            str(folder),
            f"{package.name}@{package.version}",
        ],
        capture_output=True,
        text=True,
        errors="replace",
        cwd=folder,
        check=False,
    )
    found = package.find(home)
    if done.returncode != 0 or found is None:
        said = "\n".join((done.stderr or done.stdout).rstrip().splitlines()[-LOG_LINES:])
        raise ProgramError(f"{package.name} {package.version} could not be installed", where=said)
    return found


def _working(name: str, path: str, need: str, option: str = "--version") -> str:
    """The first program of this name that works. Raises ProgramError without one, with the `need`."""
    reasons = []
    for folder in path.split(os.pathsep):
        found = shutil.which(name, path=folder) if folder else None
        reason = None if found is None else why_not(found, option)
        if found is not None and reason is None:
            return found
        if found is not None:
            reasons.append(f"{found} does not work: {reason}")
    raise ProgramError(f"{need}, and there is none", where="; ".join(dict.fromkeys(reasons)))


def required_tool(name: str) -> str:
    """A program of the system that works; skips the test where there is none."""
    try:
        return _working(name, os.environ.get("PATH", ""), f"the test needs {name}")
    except ProgramError as error:
        pytest.skip(f"{' '.join(str(error).split())}: ./tidemark test installs it with apt")


def provide(program: GoProgram, home: Home) -> Path:
    """The program; compiles it when it is not there. Raises ProgramError."""
    found = program.find(home)
    if found is not None:
        return found
    path = os.pathsep.join([os.environ.get("PATH", ""), str(GO_FOLDER)])
    go = _working("go", path, f"{program.name} needs Go to be compiled", "version")
    with held(home.tools / f"{program.name}.lock"):
        return program.find(home) or _compiled(program, go, home)


def _compiled(program: GoProgram, go: str, home: Home) -> Path:
    folder = program.folder(home)
    print(f"tidemark: compiling {program.name} {program.version}", file=sys.stderr)
    if isinstance(program, GoServer):
        _run(program, [go, "mod", "download", f"{program.package}@{program.version}"], {})
        cache = _run(program, [go, "env", "GOMODCACHE"], {}).strip()
        source = Path(cache, *f"{program.package}@{program.version}".split("/"))
        for name in program.files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            # The source can only be read, which is not to be so of the copy.
            copy = ["cp", "-RT", "--no-preserve=mode", str(source / name), str(folder / name)]
            _run(program, copy, {})
        output = ["-trimpath", "-o", str(folder / program.name)]
        _run(program, [go, "-C", str(source), "build", "-tags", GITEA_TAGS, *output, "."], {})
    else:
        _run(program, [go, "install", f"{program.package}@{program.version}"], {"GOBIN": str(folder)})
    found = program.find(home)
    if found is None:
        raise ProgramError(f"{program.name} {program.version} could not be compiled", where=str(folder))
    return found


def _run(program: GoProgram | PythonProgram, words: list[str], variables: dict[str, str]) -> str:
    """What a command printed. Raises ProgramError."""
    done = subprocess.run(
        words,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        errors="replace",
        cwd="/",
        check=False,
    )
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).rstrip().splitlines()[-LOG_LINES:])
        what = "installed" if isinstance(program, PythonProgram) else "compiled"
        raise ProgramError(f"{program.name} {program.version} could not be {what}", where=said)
    return done.stdout


def provide_python(program: PythonProgram, home: Home) -> Path:
    """The program; installs it when it is not there. Raises ProgramError."""
    found = program.find(home)
    if found is not None:
        return found
    python = _working("python3", os.environ.get("PATH", ""), f"{program.package} needs Python")
    with held(home.tools / f"{program.package}.lock"):
        return program.find(home) or _in_environment(program, python, home)


def _in_environment(program: PythonProgram, python: str, home: Home) -> Path:
    print(f"tidemark: installing {program.package} {program.version}", file=sys.stderr)
    folder = program.folder(home)
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run(program, [python, "-m", "venv", "--clear", str(folder)], {})
    _run(program, [*pip, f"{program.package}=={program.version}"], {})
    found = program.find(home)
    assert found is not None
    return found


def main() -> None:
    """Install what is missing; what cannot be installed is said, and is no failure."""
    named = (GITEA,) if sys.argv[1:] == [GITEA.name] else ()
    for program in (ACT, ACTIONLINT, AXE, VNU, TYPESCRIPT, ANSIBLE, *named):
        try:
            if isinstance(program, GoProgram):
                provide(program, locate())
            elif isinstance(program, PythonProgram):
                provide_python(program, locate())
            else:
                provide_package(program, locate())
        except TidemarkError as error:
            print(f"tidemark: {error}\n  the tests that need it are skipped", file=sys.stderr)


if __name__ == "__main__":
    main()
