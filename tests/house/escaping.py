"""Rules of the outputs: only they make markup, templates are literals, and nothing is written past them."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.house.sources import Source


def made_elsewhere(sources: Iterable[Source], makers: Mapping[str, Sequence[str]]) -> list[str]:
    """Calls of a name, or of a method of that name, outside the files and folders that may call it."""
    return [
        f"{source.at(node.lineno)}: {name}(...)"
        for source in sources
        for node, name in _calls(source)
        if name in makers and not source.path.as_posix().startswith(tuple(makers[name]))
    ]


def templates_made_of_texts(sources: Iterable[Source], templates: Sequence[str]) -> list[str]:
    """Templates that are no literals: what is put into one before it is a template is not escaped."""
    return [
        f"{source.at(node.lineno)}: the template of {name}(...) is no literal"
        for source in sources
        for node, name in _calls(source)
        if name in templates and not (node.args and isinstance(node.args[0], ast.Constant))
    ]


def _calls(source: Source) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node, node.func.id
            elif isinstance(node.func, ast.Attribute):
                whole = ast.unparse(node.func)
                yield node, whole if whole in ("json.dump", "json.dumps", "csv.writer") else node.func.attr
