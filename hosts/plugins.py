"""Plugins: congestion control, EV selection and transports from files and modules that are no part of this project.

The key `plugins` of `configure` is a list of objects:

    {"name": "fixed-rate", "kind": "congestion_control", "file": "/abs/my_cc.py", "attribute": "FixedRate"}

`kind` is `congestion_control`, `ev_selection` or `transport`, `attribute` the class in the file, of a transport the
function that makes its network (`Make` in hosts/configure.py); `"module": "package.module"` of an
installed package may be there instead of `file`. `"sha256"` beside `file` is that of the content which was checked: a
file that has become another is refused. `congestion_control` and `ev_selection` of `configure` then take the
name. A class with a dataclass `Keys` is called with an object of it as well, made of the values in `"keys"`. The
Protocols are in hosts/mrc/cc/base.py and hosts/mrc/evselect/base.py. docs/examples has one of each.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from hashlib import sha256
from types import ModuleType
from typing import Any, NamedTuple

from mrc_testbed.hosts.common.errors import PluginError
from mrc_testbed.hosts.control import CommandError, text_in
from mrc_testbed.hosts.load_limit import SlowLoad, load_limit
from mrc_testbed.hosts.mrc.cc import ALGORITHMS
from mrc_testbed.hosts.mrc.evselect import SELECTIONS
from mrc_testbed.hosts.mrc.plugins import Plugins
from mrc_testbed.hosts.protocols import PROTOCOLS

BUILT_IN: dict[str, Mapping[str, object]] = {
    "congestion_control": ALGORITHMS,
    "ev_selection": SELECTIONS,
    "transport": PROTOCOLS,
}
"""By kind: the names that a plugin cannot have."""


class LoadedPlugins:
    """What `configure` had loaded, and who is to blame for an error."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, Callable[[Any], Any]]] = {kind: {} for kind in BUILT_IN}
        self._names: dict[str, list[str]] = {}
        """By source file: the plugins in it."""

    @property
    def plugins(self) -> Plugins:
        """For the endpoint."""
        return Plugins(self._made["congestion_control"], self._made["ev_selection"])

    @property
    def transports(self) -> Mapping[str, Callable[..., Any]]:
        """By name, what makes the network of a transport."""
        return self._made["transport"]

    def load(self, rows: Sequence[Any]) -> None:
        """Load those that `configure` names. Raises CommandError."""
        with load_limit():
            self._load(rows)

    def _load(self, rows: Sequence[Any]) -> None:
        for row in rows:
            name, kind, attribute = text_in(row, "name"), text_in(row, "kind"), text_in(row, "attribute")
            if kind not in BUILT_IN:
                raise CommandError(f"plugin {name}: kind must be one of {', '.join(BUILT_IN)}, not {kind!r}")
            if name in BUILT_IN[kind] or name in self._made[kind]:
                raise CommandError(f"plugin {name}: there is already a {kind} of this name")
            module = _module(name, row)
            made = getattr(module, attribute, None)
            if not callable(made):
                raise CommandError(f"plugin {name}: {module.__file__} has no class {attribute}")
            self._made[kind][name] = _keyed(name, made, row.get("keys") or {})
            self._names.setdefault(str(module.__file__), []).append(name)

    def blame(self, error: BaseException) -> str | None:
        """`plugin FILE:LINE: ERROR (NAME)` when a plugin raised it or broke the rules, else None."""
        if isinstance(error, PluginError):
            return str(error)
        found = line_within(error, self._names.keys())
        if found is None:
            return None
        names = ", ".join(self._names[found.file])
        return f"plugin {os.path.basename(found.file)}:{found.line}: {found.text} ({names})"

    def reason(self, error: BaseException) -> str:
        """One line for the runner. An error of the core says which plugins are in use: they may have caused it."""
        names = [name for made in self._made.values() for name in made]
        suspects = f" (plugins in use: {', '.join(names)})" if names else ""
        return " ".join((self.blame(error) or f"{_text(error)}{suspects}").split("\n"))


class Raised(NamedTuple):
    """An exception, and where it was raised or passed through."""

    file: str
    line: int
    text: str


def line_within(error: BaseException, files: Container[str]) -> Raised | None:
    """The innermost line of one of these files that an error, or what led to it, came through."""
    for each in _causes(error):
        where = _innermost(each, files)
        if where is not None:
            return Raised(where.filename, where.lineno or 0, _text(each))
    return None


def with_keys(made: Callable[..., Any], values: Mapping[str, Any]) -> Callable[[Any], Any]:
    """What the core calls: a class that has `Keys` gets an object of these values behind the core's argument. Raises
    what `Keys` raises of them."""
    keys_class = getattr(made, "Keys", None)
    if keys_class is None:
        return made
    keys = keys_class(**values)
    return lambda towards: made(towards, keys)


def _keyed(name: str, made: Callable[..., Any], values: Mapping[str, Any]) -> Callable[[Any], Any]:
    try:
        return with_keys(made, values)
    except Exception as error:
        raise CommandError(f"plugin {name}: its Keys refuse {dict(values)}: {_text(error)}") from error


def _module(name: str, row: Any) -> ModuleType:
    if ("file" in row) is ("module" in row):
        raise CommandError(f"plugin {name}: give either a file or a module")
    source = text_in(row, "file" if "file" in row else "module")
    if "file" in row and not os.path.isabs(source):
        raise CommandError(f"plugin {name}: {source} must be an absolute path")
    try:
        return _from_file(source, row.get("sha256")) if "file" in row else importlib.import_module(source)
    except (Exception, SystemExit, SlowLoad) as error:
        where = _innermost(error, {source})
        line = f":{where.lineno}" if where is not None else ""
        raise CommandError(f"plugin {name}: cannot load {source}{line}: {_text(error)}") from error


def _from_file(file: str, wanted: str | None) -> ModuleType:
    """Read once: what is hashed is what is run."""
    name = f"plugin of {file} {wanted}"
    if name in sys.modules:
        return sys.modules[name]
    if not file.endswith(".py"):
        raise ImportError("not a Python file")
    with open(file, "rb") as code:
        content = code.read()
    if wanted is not None and sha256(content).hexdigest() != wanted:
        raise ImportError("it has changed since it was checked")
    module = ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    try:
        exec(compile(content, file, "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it: a generator turns a StopIteration that passes through into a RuntimeError."""
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__ or each.__context__


def _innermost(error: BaseException, files: Container[str]) -> traceback.FrameSummary | None:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return frames[-1] if frames else None


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
