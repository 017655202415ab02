"""Plugin lines for people."""

from __future__ import annotations

from collections.abc import Iterable

from mrc_testbed.testbed.scenario.model.offered import Offered, Plugin, PluginSource
from mrc_testbed.testbed.scenario.plugins.kinds import KINDS


def plugin_lines(offered: Offered) -> list[str]:
    """A line for each plugin file of a scenario."""
    return [
        plugin_line(source, (each for each in offered.plugins if each.source == source)) for source in offered.sources
    ]


def plugin_line(source: PluginSource, plugins: Iterable[Plugin]) -> str:
    """`plugin my_cc.py: congestion control fixed-rate (sha256 1a2b3c4d)`."""
    offers = ", ".join(f"{KINDS[one.kind].noun} {one.name}" for one in plugins)
    return f"plugin {source.written}: {offers} (sha256 {source.sha256[:8]})"
