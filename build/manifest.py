"""The manifest of a build, `build.json`: what it was made of, and how."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from build.version import KEY, RELEASE

MAX_COMMANDS = 10**6
"""The most compiler runs of a build: MySQL takes some thousands."""

Size = Annotated[int, Field(ge=0)]


class _Record(BaseModel):
    """Keys that only a later program knows are kept as they are."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")


class SourceRecord(_Record):
    """Where the source came from."""

    digest: str
    kind: str = ""
    location: str = ""
    commit: str = ""
    tree: str = ""


class PatchRecord(_Record):
    """A patch of the source."""

    sha256: str
    name: str = ""


class CompilerRecord(_Record):
    """The C compiler."""

    version: str = ""
    command: str = ""
    target: str = ""


class HostRecord(_Record):
    """The machine that compiled it; its programs run with the same C library, and with newer ones."""

    architecture: str
    glibc: str
    os: str = ""


class ExtensionRecord(_Record):
    """An extension that was compiled for it."""

    creates: str
    """The name that CREATE EXTENSION takes."""

    name: str = ""
    repository: str = ""
    ref: str = ""
    commit: str = ""


class InstalledFiles(_Record):
    """How many regular files and links were installed, and the bytes of the regular ones."""

    files: Size
    bytes: Size


class Seconds(_Record):
    """How long the stages of the compile took."""

    total: float


class Manifest(_Record):
    """What a build records of itself."""

    version: str
    """The version as the user wrote it."""

    release: str
    key: str
    source: SourceRecord
    patches: list[PatchRecord]

    format: int = 1
    engine: str = ""
    recipe: dict[str, Any] = {}
    choices: dict[str, str | list[str]] = {}
    """What a variant compiles differently, as BuildChoices.to_json gives it."""

    compiler: CompilerRecord = CompilerRecord()
    slim_programs: list[str] = []
    """All programs of a slim build; empty for a whole one."""

    extensions: list[ExtensionRecord] = []
    server: str = ""
    """Of a build with extensions: the key of the one that was extended."""

    installed: InstalledFiles = InstalledFiles(files=0, bytes=0)
    """What was installed. Older programs did not count it, so that such a build misses none of it."""

    ccache: bool = False
    jobs: int = 0
    runnable: float | None = None
    """How many processes wanted a core beside the compile."""

    left_out: list[str] = []
    """The variables of the caller that the compile did not get."""

    seconds: Seconds | None = None
    compile_commands: Annotated[int, Field(ge=0, le=MAX_COMMANDS)] = 0
    """How often the compiler ran."""

    host: HostRecord = HostRecord(architecture="unknown", glibc="")
    built_at: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as it was written, with all keys and no more."""
        return self.model_dump(exclude_unset=True)


def manifest_of(content: object) -> Manifest:
    """Return the manifest that parsed JSON is. Raises ValueError that names the first key that is wrong."""
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        mistake = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in mistake["loc"])
        raise ValueError(f"{key}: {mistake['msg']}" if key else mistake["msg"]) from error
    if not (RELEASE.fullmatch(manifest.release) and KEY.fullmatch(manifest.key)):
        raise ValueError("its release and key are not those of a build")
    return manifest
