"""What the plugins of a scenario offer, by kind and name, and which of them an error comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hosts.plugins import line_within

COPIES = "plugins"
"""Folder of a run folder that holds a copy of every plugin file."""


class PluginMistake(ValueError):
    """Why a plugin cannot be used, with its file, and with the line where one is to blame."""


@dataclass(frozen=True, slots=True)
class PluginSource:
    """A plugin file as it was read, or a module of an installed package (`module` is its name, else empty)."""

    written: str
    """As the scenario names it."""
    file: Path
    content: bytes = field(repr=False)
    sha256: str
    module: str = ""

    @property
    def copy_name(self) -> str:
        """Name of its copy in a run folder."""
        return f"{self.module}.py" if self.module else self.file.name


@dataclass(frozen=True, slots=True)
class Plugin:
    """One name that a plugin offers. `made`: the class; `attribute`: its name in the file."""

    kind: str
    name: str
    made: Any
    attribute: str
    source: PluginSource


@dataclass(frozen=True, slots=True)
class Offered:
    """Everything that the plugins of a scenario offer. Not `whole`: some plugin could not be loaded, so that a name
    which is not here may still be right."""

    plugins: tuple[Plugin, ...] = ()
    whole: bool = True

    def named(self, kind: str) -> Mapping[str, Any]:
        """What there is of a kind, by name."""
        return {plugin.name: plugin.made for plugin in self.plugins if plugin.kind == kind}

    @property
    def sources(self) -> tuple[PluginSource, ...]:
        """Each file once, in the order of the scenario."""
        return tuple(dict.fromkeys(plugin.source for plugin in self.plugins))

    def blame(self, error: BaseException) -> tuple[PluginSource, str] | None:
        """The plugin that an exception came from, and `FILE:LINE: ERROR`; None when it came from none."""
        files = {str(source.file): source for source in self.sources}
        found = line_within(error, files.keys())
        if found is None:
            return None
        source = files[found.file]
        return source, f"{source.file.name}:{found.line}: {found.text}"


NOTHING = Offered()
