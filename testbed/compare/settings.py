"""The settings of a run as a flat list of keys: two runs with the same list are repeats of each other. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, cast

from mrc_testbed.testbed.scenario import Scenario
from mrc_testbed.testbed.scenario.model.matrix import AXES, JUDGE
from mrc_testbed.testbed.scenario.text.keys import whole_value
from mrc_testbed.testbed.scenario.text.units import format_duration, format_rate
from mrc_testbed.testbed.scenario.text.yaml_text import parse_source
from mrc_testbed.testbed.transports import registry
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.graph import Family

SEED = "seed"
NAME = "name"
WORLD = "world"
_TALK = ("about", "expect", "paper", *AXES, JUDGE, "time_limit", NAME, SEED)
"""First words of keys that change nothing in a run; the seed is only one draw of it."""


def settings_of(scenario: Scenario) -> dict[str, str]:
    """Settings by dotted key, with the defaults of fabric and endpoint, and quantities in one notation."""
    written = parse_source(scenario.dump_yaml(), "scenario.yaml").data
    found = {key: whole_value(value) for key, value in _leaves(written) if key.split(".")[0] not in _TALK}
    family = _family(scenario.shape().family)
    above = tuple(f"{one}." for one in family)
    written_otherwise = [key for key in found if not family.get(key) and f"{key}.".startswith(above)]
    unread = [f"{group}." for group in _unread_groups(scenario)]
    for key in [key for key in found if key in written_otherwise or key.startswith(tuple(unread))]:
        del found[key]
    return found | _plugins(scenario) | _usual(scenario)


def _unread_groups(scenario: Scenario) -> Iterator[str]:
    """Keys of transports, congestion controls and EV selections that the scenario has, and does not use."""
    endpoint = scenario.endpoint
    yield from (f"endpoint.{name}" for name in endpoint.plugins if name not in endpoint.chosen)
    groups = {one.group for one in {**registry.known(), **scenario.offered.named("transport")}.values()}
    yield from groups - {scenario.transport.group, "endpoint"}


def _plugins(scenario: Scenario) -> dict[str, str]:
    """Plugins by content, because a file of the same name may differ."""
    places = {name: place for place, name in enumerate(scenario.plugins)}
    found: dict[str, str] = {}
    for source in scenario.offered.sources:
        key = f"plugins.{places[source.written]}"
        found[key] = f"{found.get(key, source.written)} {source.sha256[:8]}"
    return found


def _usual(scenario: Scenario) -> dict[str, str]:
    shape = scenario.shape()
    return {
        "fabric.planes": str(shape.planes),
        **{key: value for key, value in _family(shape.family).items() if value},
        "fabric.port_rate": format_rate(shape.port_rate_bps),
        "fabric.rtt": format_duration(shape.rtt_ns),
        **{f"endpoint.{key}": value for key, value in scenario.endpoint.written().items()},
        **{f"trimming.{key}": whole_value(value) for key, value in scenario.trimming.written().items()},
        WORLD: scenario.world.value,
        "transport": scenario.transport,
        "routing": scenario.routing,
    }


def _family(family: Family) -> dict[str, str]:
    """The keys of a family as scenarios have them, those of two tiers flat; empty for one at its usual value."""
    below = "fabric" if isinstance(family, Clos2) else f"fabric.family.{family.word}"
    keys = ((key.name, getattr(family, key.name), key.default) for key in fields(cast(Any, family)))
    return {f"{below}.{name}": "" if value == usual else _key_text(value) for name, value, usual in keys}


def _key_text(value: Any) -> str:
    return ", ".join(f"{share:.3g}" for share in value) if isinstance(value, tuple) else str(value)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None or not value:
        yield ".".join(path), value
        return
    for key, below in items:
        yield from _leaves(below, (*path, str(key)))
