"""Modules that are executed when something in them is first used, not when they are imported."""

import importlib.util
import sys
from collections.abc import Mapping
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any

_loading = RLock()


class _Deferred(ModuleType):
    """A module that is not executed yet. Python 3.11's own LazyLoader executes it at the next `import`."""

    def __getattr__(self, name: str) -> Any:
        with _loading:
            if type(self) is _Deferred and not self.__dict__.get("_is_loading"):
                self.__dict__["_is_loading"] = True
                spec = self.__spec__
                assert spec is not None
                assert spec.loader is not None
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
        if name not in self.__dict__:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self.__dict__[name]


def import_when_used(name: str, found_in: Mapping[str, str] | None = None) -> None:
    """Defer the module called `name`, unless it is imported already. Its package must be imported.

    `found_in` says of names that do not need the whole module which part of it they come from.
    """
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"there is no module {name}")
    module = importlib.util.module_from_spec(spec)
    module.__class__ = _Deferred
    sys.modules[name] = module
    for attribute, part in (found_in or {}).items():
        setattr(module, attribute, getattr(import_module(part), attribute))
    package, _, child = name.rpartition(".")
    if package:
        setattr(sys.modules[package], child, module)
