"""Faults that are rules of the port program: each is taken away by its own handle, whatever else holds on the port."""

from __future__ import annotations

from collections.abc import Iterable

from testbed.fabric.port_rules import PortRule, RuleHandle
from testbed.faults.site import Site
from testbed.scenario import Cycle

_MILLION = 1_000_000


def chance(cycle: Cycle) -> float:
    """The share of packets that a cycle is about, as a probability."""
    return cycle.how.share / _MILLION


def put(site: Site, cycle: Cycle, rule: PortRule) -> None:
    """Let a rule hold at all places of a cycle. Raises FabricError; what was put until then is healed with the rest."""
    for place in cycle.places:
        keep(site, cycle, [site.fabric.add_rule(place.link, place.toward, rule)])


def keep(site: Site, cycle: Cycle, handles: Iterable[RuleHandle]) -> None:
    """Remember handles until `heal`."""
    site.rules.setdefault(cycle.key, []).extend(handles)


def heal(site: Site, cycle: Cycle) -> None:
    """Take away the rules of this cycle and no others."""
    for handle in site.rules.pop(cycle.key, []):
        site.fabric.remove_rule(handle)
