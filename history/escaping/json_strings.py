"""JSON that holds every text as it is, with escapes for characters that are not shown."""

import json
import re
from typing import Any

from history.escaping.characters import INVISIBLE, REPLACED

_HIDDEN = re.compile(f"[{INVISIBLE}]")
_SURROGATES = range(0xD800, 0xE000)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON without a line end; letters beyond ASCII are not escaped.

    REPLACED stands for half a character, which is no Unicode text: many readers refuse its escape.
    """
    return _HIDDEN.sub(_escape, json.dumps(value, indent=indent, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code in _SURROGATES:
        return REPLACED
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
