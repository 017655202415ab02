"""Implementations by name: those of the core, and those that a plugin adds. Who loads plugins is not the core's affair.

A plugin is an object that is called as the built-in classes are: a congestion control with the `Timing` towards its
peer, an EV selection with its `EvSet`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mrc_testbed.hosts.common.errors import PluginError, UnknownChoiceError
from mrc_testbed.hosts.mrc.cc import ALGORITHMS, CongestionControl
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.mrc.evselect import SELECTIONS, EvSelection, EvSet, Guard
from mrc_testbed.hosts.mrc.timing import Timing

CONTROL_METHODS = ("begin", "on_sack", "on_trim", "on_loss", "on_penalty")
SELECTION_METHODS = (
    "take", "changed", "enter", "leave", "open", "close", "active", "on_congestion", "on_arrival", "on_round_trip",
    "on_loss",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plugins:
    """What was loaded, by the names that the configuration uses."""

    congestion_control: Mapping[str, Callable[[Timing], CongestionControl]] = field(default_factory=dict)
    ev_selection: Mapping[str, Callable[[EvSet], EvSelection]] = field(default_factory=dict)


NO_PLUGINS = Plugins()


class Choices:
    """Makes what the configuration names. A plugin goes before a built-in implementation of the same name."""

    __slots__ = ("_plugins",)

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins

    def check(self, config: EndpointConfig) -> None:
        """Raises `UnknownChoiceError` when the configuration names what nobody has."""
        for setting, name, known in (
            ("congestion_control", config.congestion_control, {**ALGORITHMS, **self._plugins.congestion_control}),
            ("ev_selection", config.ev_selection, {**SELECTIONS, **self._plugins.ev_selection}),
        ):
            if name not in known:
                raise UnknownChoiceError(setting, name, known)

    def make_control(self, name: str, timing: Timing) -> CongestionControl:
        """The congestion control of one QP."""
        plugin = self._plugins.congestion_control.get(name)
        if plugin is None:
            return ALGORITHMS[name](timing)
        control = plugin(timing)
        _require(name, control, CONTROL_METHODS, "window")
        return control

    def make_selection(self, name: str, evs: EvSet) -> EvSelection:
        """The EV selection towards one peer."""
        plugin = self._plugins.ev_selection.get(name)
        if plugin is None:
            return SELECTIONS[name](evs)
        selection = plugin(evs)
        _require(name, selection, SELECTION_METHODS, "turn")
        return Guard(name, selection, evs)


def _require(name: str, made: object, methods: tuple[str, ...], number: str) -> None:
    """Notice at the beginning what would otherwise be noticed in the middle of a run."""
    missing = [method for method in methods if not callable(getattr(made, method, None))]
    if missing:
        raise PluginError(name, f"lacks {', '.join(f'{method}()' for method in missing)}")
    if not isinstance(getattr(made, number, None), int | float):
        raise PluginError(name, f"{number} must be a number, not {getattr(made, number, None)!r}")
