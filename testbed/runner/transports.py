"""Which transports can be run."""

from __future__ import annotations

from testbed.errors import MissingCapability
from testbed.scenario import Scenario

BUILT = ("mrc", "roce")
"""Transports whose endpoints exist."""


def refuse_unbuilt(scenario: Scenario) -> None:
    """Raises MissingCapability for a transport that can be written and checked, but not run yet."""
    if scenario.transport not in BUILT:
        fix = f"run it over {BUILT[0]} (`--set transport={BUILT[0]}`)"
        raise MissingCapability(f"transport {scenario.transport} is not built yet", fix)
