"""Selects the parts of this machine that a run uses, from what the scenario wants and the machine offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from testbed.fabric import capabilities
from testbed.fabric.capabilities import PORT_PROGRAM, Capability
from testbed.fabric.options import FabricOptions
from testbed.scenario import Scenario
from testbed.scenario.transports import TransportKind


def fabric_options(scenario: Scenario, found: Sequence[Capability]) -> FabricOptions:
    """The fabric options. Raises MissingCapability if the scenario needs an absent part."""
    kernel_speaks = "transport: tcp" if scenario.transport is TransportKind.TCP else ""
    options = capabilities.choose(found, scenario.shape(), kernel_speaks)
    if scenario.needs_port_program:
        capabilities.require_port_program(found, scenario.needs_port_program)
    switch = scenario.fabric.switch
    if switch.use == "plain":
        return replace(options, switch_ports="plain shaper")
    return replace(options, thresholds=scenario.port_thresholds())


def switch_words(scenario: Scenario, found: Sequence[Capability], options: FabricOptions) -> str:
    """The kind of switch port, and the reason if it is not the port program."""
    if options.port_program:
        return "port program (marks, trims)"
    if scenario.fabric.switch.use == "plain":
        return "plain shapers (fabric.switch: plain)"
    detail = next((each.detail for each in found if each.name == PORT_PROGRAM), "it was not tried")
    return f"plain shapers: no port program ({detail})"
