"""Imports of plugins that were written before all modules of this program were in the package `mrc_testbed`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

PACKAGE = "mrc_testbed"
ROOMS = ("testbed", "hosts", "topos")
"""Packages of before. A plugin may import other modules of these names, which are somebody else's."""


class Moved(NamedTuple):
    """An import of a module that has another name now."""

    line: int
    was: str

    def __str__(self) -> str:
        return f"imports {self.was}, which is {PACKAGE}.{self.was} now"


def moved_import(content: bytes) -> Moved | None:
    """The first such import in the source of a plugin, which is read and not run: what has the old name there now may
    be anything. None for a source that Python cannot read, too."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = (Moved(line, name) for line, name in _imports(tree) if _is_ours(name))
    return min(found, default=None)


def hint_of(error: BaseException) -> str:
    """For the error of a package that was imported; empty if it does not want a package of before."""
    if not isinstance(error, ModuleNotFoundError) or error.name not in ROOMS:
        return ""
    return f"; modules of mrc-testbed are in {PACKAGE}.{error.name} now"


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and `ROOM.MODULE` of each import, however deep in the room."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, _module_of_room(alias.name)) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, _module_of_room(f"{node.module}.{alias.name}")) for alias in node.names)


def _module_of_room(name: str) -> str:
    return ".".join(name.split(".")[:2])


def _is_ours(name: str) -> bool:
    room, _, module = name.partition(".")
    return room in ROOMS and bool(module) and find_spec(f"{PACKAGE}.{name}") is not None
