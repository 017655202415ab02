"""What a scenario's plugins offer, by kind and name, and which plugin an error comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrc_testbed.hosts.load_limit import SlowCall, call_limit
from mrc_testbed.hosts.plugins import BUILT_IN, line_within
from mrc_testbed.testbed.errors import TestbedError

COPIES = "plugins"
"""Folder in a run folder for a copy of every plugin file."""


class PluginMistake(ValueError):
    """Why a plugin cannot be used, with its file, and the line if known."""


class PluginStuck(TestbedError):
    """A call of a plugin does not return."""


@dataclass(frozen=True, slots=True)
class PluginSource:
    """The content of a plugin file, or a module of an installed package (`module` is its name, else empty)."""

    written: str
    """As named in the scenario."""
    file: Path
    content: bytes = field(repr=False)
    sha256: str
    module: str = ""

    @property
    def copy_name(self) -> str:
        """File name of its copy in a run folder."""
        return f"{self.module}.py" if self.module else self.file.name


@dataclass(frozen=True, slots=True)
class Plugin:
    """One offered name. `made`: the class; `attribute`: its name in the file."""

    kind: str
    name: str
    made: Any
    attribute: str
    source: PluginSource

    @property
    def has_keys(self) -> bool:
        """Whether it is a choice of the endpoints with keys of its own in `endpoint`, below its name."""
        return self.kind in BUILT_IN and getattr(self.made, "Keys", None) is not None


@dataclass(frozen=True, slots=True)
class Offered:
    """Everything that a scenario's plugins offer. Not `whole`: a plugin failed to load, so an unknown name may still be
    right."""

    plugins: tuple[Plugin, ...] = ()
    whole: bool = True

    def named(self, kind: str) -> Mapping[str, Any]:
        """The offers of a kind, by name."""
        return {plugin.name: plugin.made for plugin in self.plugins if plugin.kind == kind}

    @property
    def sources(self) -> tuple[PluginSource, ...]:
        """Each file once, in scenario order."""
        return tuple(dict.fromkeys(plugin.source for plugin in self.plugins))

    @contextmanager
    def limited(self, folder: Path | None = None) -> Iterator[None]:
        """Raises PluginStuck inside where a call of their code does not return (hosts/load_limit.py). `folder`: of the
        run, whose copies the hosts load."""
        files = {str(source.file) for source in self.sources}
        if folder:
            files |= {str((folder / COPIES / source.copy_name).resolve()) for source in self.sources}
        try:
            with call_limit(files):
                yield
        except SlowCall as error:
            raise PluginStuck(f"plugin {error}") from error

    def blame(self, error: BaseException) -> tuple[PluginSource, str] | None:
        """The plugin that raised an exception, and `FILE:LINE: ERROR`; None if none did."""
        files = {str(source.file): source for source in self.sources}
        found = line_within(error, files.keys())
        if found is None:
            return None
        source = files[found.file]
        return source, f"{source.file.name}:{found.line}: {found.text}"

    def blamed_in(self, reason: str) -> bool:
        """Whether the reason that a host told for its end names one of them (hosts/plugins.py)."""
        names = {name for source in self.sources for name in (source.file.name, source.copy_name)}
        return any(f"plugin {name}:" in reason for name in names)


NOTHING = Offered()
