"""The file of a suite with the data of a database: a dump, a program that fills it, or SQL."""

from enum import StrEnum
from pathlib import Path

from build.errors import shell_line
from build.version import Engine

_ARCHIVE, _TAR, _TAR_AT, _CONTENTS = b"PGDMP", b"ustar", 257, b"toc.dat"
"""How pg_dump's formats custom and tar begin; the first file of the latter is the table of contents."""

_PROGRAMS = (b"#!", b"\x7fELF")
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
_READ = 4096


class LoadKind(StrEnum):
    """How the data get into a database."""

    ARCHIVE = "archive"
    """A dump that pg_restore reads: one file, a folder or a tar."""
    PROGRAM = "program"
    """An executable file, which is told the address of the server."""
    SQL = "SQL"
    """Text for the client program of the engine."""

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The engines whose databases it can fill."""
        return (Engine.POSTGRES,) if self is LoadKind.ARCHIVE else tuple(Engine)


def kind_of(path: Path) -> LoadKind:
    """Return what a file, or the folder of a dump, is. Raises ValueError with the reason if it is nothing."""
    if path.is_dir():
        if not (path / _CONTENTS.decode()).is_file():
            raise ValueError(f"the folder {path.name} is no dump of pg_dump: it has no toc.dat")
        return LoadKind.ARCHIVE
    with path.open("rb") as file:
        head = file.read(_READ)
    is_tar = head[_TAR_AT:].startswith(_TAR) and head.startswith(_CONTENTS)
    if head.startswith(_ARCHIVE) or is_tar:
        return LoadKind.ARCHIVE
    if head.startswith(_PROGRAMS):
        if not path.stat().st_mode & 0o111:
            raise ValueError(
                f"{path.name} is a program that may not be executed: {shell_line('chmod', '+x', path.name)}"
            )
        return LoadKind.PROGRAM
    for magic, name in _COMPRESSED.items():
        if head.startswith(magic):
            raise ValueError(f"{path.name} is compressed with {name}: unpack it first")
    if b"\0" in head or not head:
        raise ValueError(f"{path.name} is neither a dump of pg_dump, nor a program, nor SQL")
    return LoadKind.SQL
