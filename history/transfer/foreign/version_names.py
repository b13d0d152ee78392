"""Versions as other people write them."""

import difflib
import re
from dataclasses import replace

from build.engines import ENGINES
from build.errors import TidemarkError
from build.version import Engine, Version, parse_version

_ENGINE_OF = {description.short_names.prefix: engine for engine, description in ENGINES.items()}
_SHORT = re.compile(rf"(?:x\.)?({'|'.join(_ENGINE_OF)})([0-9]{{3,9}}|[0-9]{{2,3}}[a-z]+[0-9]+)(?:_(.+))?")

_FOREIGN = re.compile(r"(?:x\.)?([a-z]+(?:_[a-z]+)*)([0-9]+)(?:_.*)?")
_PRODUCTS = {description.product.lower(): engine for engine, description in ENGINES.items()}
_PRODUCTS |= {str(engine): engine for engine in Engine}
_PRODUCT = re.compile(
    rf"({'|'.join(_PRODUCTS)})[ _-]v?(\d\w*(?:\.\d+){{0,2}})(?: \(.*\))?", re.IGNORECASE | re.ASCII
)
_NAMED = re.compile(r"([a-z][a-z0-9]*)@\S+")


class UnreadableVersionError(ValueError):
    """A text that names no version."""


class UnknownEngineError(UnreadableVersionError):
    """A version of an engine that this Tidemark does not know."""

    def __init__(self, version: str) -> None:
        """`version` is how the table calls it."""
        super().__init__(f"'{version}' is a version of an engine that this Tidemark does not know")
        self.version = version


def version_of(text: str) -> Version:
    """`engine@ref`, or a name such as `MySQL 8.0.36`, `x.pg181_o2nofp.x10b_c32r128.pk1`, `ma110806`.

    How the digits are read is said by `short_names` of each engine: `my5651` is MySQL 5.6.51, `pg1222` is
    Postgres 12.22, `ma100230` is MariaDB 10.2.30; `pg18beta2` and `postgres@18beta2` are the tag of a
    prerelease. Raises
    UnknownEngineError for a version of another engine, such as `fbmy8032`, and UnreadableVersionError for all
    else that is no version.
    """
    if "@" in text:
        if (named := _NAMED.fullmatch(text)) and not _is_close(named[1]):
            raise UnknownEngineError(text)
        try:
            version = parse_version(text)
        except TidemarkError as error:
            raise UnreadableVersionError(str(error).replace("\n", ";")) from error
        tag = ENGINES[version.engine].prerelease_tag(version.ref)
        return replace(version, ref=tag) if tag else version
    if product := _PRODUCT.fullmatch(text.strip()):
        return version_of(f"{_PRODUCTS[product[1].lower()]}@{product[2]}")
    match = _SHORT.fullmatch(text)
    if match is None:
        _refuse_foreign(text)
        raise UnreadableVersionError(
            f"'{text[:80]}' names no version: write engine@ref, such as postgres@18.1"
        )
    return _release(text, _ENGINE_OF[match[1]], match[2])


def names_version(text: str) -> bool:
    """Return whether a text names a version of an engine that Tidemark knows."""
    try:
        version_of(text)
    except UnreadableVersionError:
        return False
    return True


def _is_close(name: str) -> bool:
    """Whether a name is that of an engine, or so close to one that it is rather a mistake."""
    return bool(difflib.get_close_matches(name, list(Engine), 1, cutoff=0.85))


def _refuse_foreign(text: str) -> None:
    """Raises UnknownEngineError for a short name of an unknown engine, such as `fbmy8032`."""
    match = _FOREIGN.fullmatch(text)
    if match is not None and match[1] not in _ENGINE_OF:
        raise UnknownEngineError(text)


def _release(text: str, engine: Engine, digits: str) -> Version:
    description = ENGINES[engine]
    names = description.short_names
    release = names.release(digits) or description.prerelease_tag(digits)
    if release is None:
        raise UnreadableVersionError(
            f"'{text}' names no version of {description.title}: after '{names.prefix}' come {names.rule}; "
            f"write {engine}@ and the release instead"
        )
    return Version(engine, release)


def rest_of(text: str) -> str:
    """What a short name says besides the version, such as `o2nofp.x10a_c32r128.pk1`; else nothing."""
    match = _SHORT.fullmatch(text)
    return (match[3] or "") if match else ""
