"""Installed packages that offer plugins, by their entry points: nothing of them is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata

GROUP = "mrc_testbed.plugins"
"""Entry point group; its modules have a `PLUGIN`."""


def installed() -> Mapping[str, list[metadata.EntryPoint]]:
    """The entry points, by `plain_name` of the package."""
    found: dict[str, list[metadata.EntryPoint]] = {}
    for point in metadata.entry_points(group=GROUP):
        if point.dist is not None:
            found.setdefault(plain_name(point.dist.name), []).append(point)
    return found


def plain_name(package: str) -> str:
    """Names of packages are equal when these are (PEP 503)."""
    return package.lower().replace("_", "-").replace(".", "-")
