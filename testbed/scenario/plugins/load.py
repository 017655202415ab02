"""Finds, reads and runs the plugins of a scenario, and checks what they offer."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from mrc_testbed.hosts.load_limit import SlowLoad, load_limit
from mrc_testbed.hosts.plugins import BUILT_IN as LOADED_BY_HOSTS
from mrc_testbed.hosts.plugins import line_within
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.folders import HeldPath, as_held
from mrc_testbed.testbed.scenario.model.offered import COPIES, Offered, Plugin, PluginMistake, PluginSource
from mrc_testbed.testbed.scenario.plugins.kinds import KINDS
from mrc_testbed.testbed.scenario.plugins.moved import hint_of, moved_import
from mrc_testbed.testbed.scenario.plugins.packages import installed, plain_name
from mrc_testbed.testbed.scenario.plugins.trust import require_trust
from mrc_testbed.testbed.scenario.text.source import SCENARIO_FILE
from mrc_testbed.testbed.transports.base import Transport

SUFFIX = ".py"
MAX_BYTES = 1 << 20
"""Plugins are written by hand; a larger file is a mistake."""
EXAMPLE = 'PLUGIN = {"congestion_control": {"my-name": MyClass}}'


class Wrong(NamedTuple):
    """What is wrong with one entry of `plugins`."""

    place: int
    message: str


def load_plugins(names: Any, scenario: str, recorded: bool = False) -> tuple[Offered, list[Wrong]]:
    """What the entries of `plugins` in the file `scenario` offer. A value that is not a list of names offers nothing;
    its validator reports it.

    `recorded`: the file is part of a run folder, so only files are run that were run here before.
    """
    found: list[Plugin] = []
    wrong: list[Wrong] = []
    for index, name in enumerate(names if isinstance(names, list) else []):
        if not isinstance(name, str) or not name or name in names[:index]:
            continue
        try:
            for source, is_copy in _sources(name, as_held(Path(scenario))):
                require_trust(source, recorded or is_copy)
                found += _new(plugins_of(source), found)
        except PluginMistake as mistake:
            wrong.append(Wrong(index, str(mistake)))
    return Offered(tuple(found), whole=not wrong), wrong


def package_sources(name: str) -> Iterator[PluginSource]:
    """The modules that an installed package offers. Raises PluginMistake."""
    packages = installed()
    points = packages.get(plain_name(name))
    if points is None:
        there = f"; there are {', '.join(sorted(packages))}" if packages else "; no installed package has plugins"
        hint = did_you_mean(name, packages) or f"{there}. A file ends in .py"
        raise PluginMistake(f"no installed package {name!r} has plugins{hint}")
    for point in points:
        module = _imported(name, point.module)
        yield _read(name, Path(str(module.__file__)), point.module)


def plugins_of(source: PluginSource) -> list[Plugin]:
    """Run the plugin and check everything it offers. Raises PluginMistake."""
    try:
        with load_limit():
            module = sys.modules[source.module] if source.module else _run(source)
            return list(_offers(source, module))
    except SlowLoad as error:
        raise PluginMistake(_where(source, error)) from error


def _new(plugins: Sequence[Plugin], before: Sequence[Plugin]) -> Sequence[Plugin]:
    """Raises PluginMistake if a name, or the place of a copy, is taken by an earlier plugin."""
    taken = {(plugin.kind, plugin.name): plugin.source.written for plugin in before}
    copies = {plugin.source.copy_name: plugin.source for plugin in before}
    for place, plugin in enumerate(plugins):
        other = taken.get((plugin.kind, plugin.name))
        if other is not None:
            raise PluginMistake(
                f"{plugin.source.file.name}: {other} has a {KINDS[plugin.kind].noun} {plugin.name!r} too"
            )
        _require_own_section(plugin, [*before, *plugins[:place]])
        if copies.get(plugin.source.copy_name, plugin.source) != plugin.source:
            raise PluginMistake(f"two plugin files are called {plugin.source.copy_name}; rename one")
    return plugins


def _require_own_section(plugin: Plugin, others: Sequence[Plugin]) -> None:
    """The keys of a plugin are in `endpoint` below its name. Raises PluginMistake if those of another do."""
    same = next((one for one in others if one.has_keys and one.name == plugin.name and one.kind != plugin.kind), None)
    if plugin.has_keys and same is not None:
        both = f"{KINDS[plugin.kind].noun} and {KINDS[same.kind].noun} {plugin.name!r} both have keys in `endpoint`"
        raise PluginMistake(f"{plugin.source.file.name}: {both}; rename one")


def _sources(name: str, scenario: Path) -> Iterator[tuple[PluginSource, bool]]:
    """Each source, and whether it is the copy in the folder of a run or of a sweep."""
    if not name.endswith(SUFFIX):
        yield from ((source, False) for source in package_sources(name))
        return
    # A run folder has its own copies, which are what was run.
    copy = [scenario.parent / COPIES / Path(name).name] if scenario.name == SCENARIO_FILE else []
    beside = scenario.parent / name
    file = next((each for each in (*copy, beside, Path(name)) if each.is_file()), None)
    if file is None:
        near = did_you_mean(Path(name).name, [each.name for each in beside.parent.glob(f"*{SUFFIX}")])
        here = "" if beside.absolute() == Path(name).absolute() else f", and none in {Path.cwd()}"
        raise PluginMistake(f"there is no file {beside}{here}{near}")
    yield _read(name, file if isinstance(file, HeldPath) else file.resolve()), file in copy


def _read(name: str, file: Path, module: str = "") -> PluginSource:
    try:
        with file.open("rb") as code:
            content = code.read(MAX_BYTES + 1)
    except OSError as error:
        raise PluginMistake(f"{file}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise PluginMistake(f"{file}: is too long; a plugin has at most {MAX_BYTES} bytes")
    return PluginSource(name, file, content, sha256(content).hexdigest(), module)


def _imported(name: str, module: str) -> types.ModuleType:
    try:
        with load_limit():
            return importlib.import_module(module)
    except (Exception, SystemExit, SlowLoad) as error:
        told = f"{type(error).__name__}: {error}{hint_of(error)}"
        raise PluginMistake(f"{name}: cannot import {module}: {told}") from error


def _run(source: PluginSource) -> types.ModuleType:
    """A module of exactly the bytes whose hash is recorded.

    It is run again only if another file of its name was run meanwhile, so its classes stay the same for all cells of a
    matrix.
    """
    name = f"plugin {source.file.name}"
    before = sys.modules.get(name)
    if before is not None and before.__dict__["__plugin__"] == source:
        return before
    if moved := moved_import(source.content):
        raise PluginMistake(f"{source.file.name}:{moved.line}: {moved}")
    module = types.ModuleType(name)
    module.__file__ = str(source.file)
    module.__dict__["__plugin__"] = source
    sys.modules[name] = module
    try:
        exec(compile(source.content, source.file, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise PluginMistake(_where(source, error)) from error
    except BaseException:
        del sys.modules[name]  # it is half there
        raise
    return module


def _where(source: PluginSource, error: BaseException, begins: str = "") -> str:
    """The error with its line. `begins`: line of the class, for errors raised outside the file."""
    if isinstance(error, SyntaxError) and error.filename == str(source.file):
        return f"{source.file.name}:{error.lineno}: SyntaxError: {error.msg}"
    found = line_within(error, {str(source.file)})
    line = f":{found.line}" if found else begins
    return f"{source.file.name}{line}: {type(error).__name__}: {error}"


def _offers(source: PluginSource, module: types.ModuleType) -> Iterator[Plugin]:
    file = source.file.name
    declared = getattr(module, "PLUGIN", None)
    if not isinstance(declared, dict) or not all(isinstance(names, dict) and names for names in declared.values()):
        raise PluginMistake(f"{file} declares nothing; write at its end, for example, `{EXAMPLE}`")
    if not declared:
        raise PluginMistake(f"{file}: PLUGIN is empty; write, for example, `{EXAMPLE}`")
    attributes = {id(value): name for name, value in vars(module).items()}
    for kind, names in declared.items():
        if kind not in KINDS:
            hint = did_you_mean(str(kind), KINDS) or f"; there are {', '.join(KINDS)}"
            raise PluginMistake(f"{file}: PLUGIN has an unknown kind {kind!r}{hint}")
        for name, made in names.items():
            wrong = KINDS[kind].wrong_name(name) or _wrong_object(kind, name, made, source)
            if wrong:
                raise PluginMistake(f"{file}{_line_of(made, source)}: {KINDS[kind].noun} {name!r} {wrong}")
            attribute = attributes.get(id(made), "")
            if isinstance(made, Transport):
                attribute = made.endpoint
                if attribute and not callable(getattr(module, attribute, None)):
                    raise PluginMistake(f"{file}: {KINDS[kind].noun} {name!r}: there is no function {attribute}")
            elif kind in LOADED_BY_HOSTS and not attribute:
                raise PluginMistake(f"{file}: {KINDS[kind].noun} {name!r} must be a class with a name in the file")
            yield Plugin(kind, name, made, attribute, source)


def _wrong_object(kind: str, name: str, made: Any, source: PluginSource) -> str:
    try:
        return KINDS[kind].wrong_object(name, made)
    except Exception as error:
        raise PluginMistake(_where(source, error, _line_of(made, source))) from error


def _line_of(made: Any, source: PluginSource) -> str:
    """`:LINE` of the class in its file, if Python knows it."""
    name = getattr(made, "__name__", None)
    begins = (f"class {name}", f"def {name}")
    lines = source.content.decode(errors="replace").splitlines()
    return next((f":{number}" for number, line in enumerate(lines, 1) if name and line.startswith(begins)), "")
