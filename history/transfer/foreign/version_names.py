"""Versions and moments as other people write them."""

import re

from build.errors import TidemarkError
from build.version import Engine, Version, parse_version

_SHORT = re.compile(r"(?:x\.)?(pg|my)(\d{3,})(?:_(.+))?")


def version_of(text: str) -> Version:
    """`engine@ref`, or a name such as `pg1222`, `x.pg181_o2nofp.x10b_c32r128.pk1`, `my8045_rel`.

    The rule: after `pg` two digits of the major version, from 10, then the minor one; after `my` one digit,
    one digit, and the rest: 5651 is 5.6.51, 970 is 9.7.0. Raises ValueError for all else.
    """
    if "@" in text:
        try:
            return parse_version(text)
        except TidemarkError as error:
            raise ValueError(str(error).replace("\n", ";")) from error
    match = _SHORT.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' names no version: write engine@ref, such as postgres@18.1")
    engine, digits, _ = match.groups()
    if engine == "my":
        return Version(Engine.MYSQL, f"{digits[0]}.{digits[1]}.{int(digits[2:])}")
    if digits[0] in "09":  # 9.6.24 would be read as 96.24
        raise ValueError(f"'{text}' is not a version from Postgres 10 on: write postgres@9.6.24 or the like")
    return Version(Engine.POSTGRES, f"{digits[:2]}.{int(digits[2:])}")


def rest_of(text: str) -> str:
    """What a short name says besides the version, such as `o2nofp.x10a_c32r128.pk1`; else nothing."""
    match = _SHORT.fullmatch(text)
    return (match[3] or "") if match else ""
