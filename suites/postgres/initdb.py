"""The words of initdb for a build, whose version may not have all of them."""

from collections.abc import Mapping

from build.build import Build
from suites.capabilities import CapabilityError, knows_initdb_option
from suites.postgres.initdb_options import CHECKSUMS, EVERY


def initdb_words(build: Build, chosen: Mapping[str, str]) -> list[str]:
    """Return the words for the initdb of a build. Raises CapabilityError for what it does not have."""
    words = []
    for name, value in {**EVERY, **chosen}.items():
        if name == CHECKSUMS:
            words += _checksums(build, is_on=value == "on")
            continue
        for needed in (name, f"{name}={value}"):
            if not knows_initdb_option(build, needed):
                raise CapabilityError(f"the initdb of {build.version} has no {needed}", where="--initdb")
        words.append(f"--{name}={value}")
    return words


def _checksums(build: Build, *, is_on: bool) -> list[str]:
    if is_on:
        return ["--data-checksums"]
    # Before there was a word for it, it was what initdb did without one.
    return ["--no-data-checksums"] if knows_initdb_option(build, "no-data-checksums") else []
