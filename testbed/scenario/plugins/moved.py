"""Imports of plugins that were written for modules which have another name now, or are no more."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

PACKAGE = "mrc_testbed"
ROOMS = ("testbed", "hosts", "topos")
"""Packages of before. A plugin may import other modules of these names, which are somebody else's."""


class Moved(NamedTuple):
    """An import of a module that is not there under this name. `now`: what to write."""

    line: int
    was: str
    now: str

    def __str__(self) -> str:
        return f"imports {self.was}, which is {self.now}"


def moved_import(content: bytes) -> Moved | None:
    """The first such import in the source of a plugin, which is read and not run: what has the old name there now may
    be anything. None for a source that Python cannot read, too."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return min((*_of_before(tree), *_gone(tree)), default=None)


def hint_of(error: BaseException) -> str:
    """For the error of a package that was imported; empty if it does not want a package of before."""
    if not isinstance(error, ModuleNotFoundError) or error.name not in ROOMS:
        return ""
    return f"; modules of mrc-testbed are in {PACKAGE}.{error.name} now"


def _of_before(tree: ast.Module) -> Iterator[Moved]:
    """Written before all modules of this program were in one package."""
    for line, name in _imports(tree):
        room, _, module = name.partition(".")
        if room in ROOMS and module and find_spec(f"{PACKAGE}.{name}") is not None:
            yield Moved(line, name, f"{PACKAGE}.{name} now")


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and `ROOM.MODULE` of each import, however deep in the room."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, _module_of_room(alias.name)) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, _module_of_room(f"{node.module}.{alias.name}")) for alias in node.names)


def _module_of_room(name: str) -> str:
    return ".".join(name.split(".")[:2])


def _gone(tree: ast.Module) -> Iterator[Moved]:
    """Of modules that have moved within the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        else:
            continue
        for name in names:
            if name.startswith(f"{PACKAGE}.") and not _is_there(name):
                yield Moved(node.lineno, name, f"no more: {PACKAGE}.api has what plugins need")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
