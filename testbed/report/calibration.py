"""A calibration for people: the loads that were tried, and the fabrics that this machine carries."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType

from mrc_testbed.testbed.calibration import Calibration, Step, lasting_pps, machine_capacity
from mrc_testbed.testbed.report.console import plain_table
from mrc_testbed.testbed.transports.base import Transport
from mrc_testbed.testbed.transports.registry import TRANSPORTS, usual_packet
from mrc_testbed.topos.budget import Capacity, carried_text, suggest
from mrc_testbed.topos.cost import FEW_HOSTS, STANDARD_COST, cpus, crowding, full_load
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.units import count_text, rate_text, time_text

_SIZES = ((8, 4), (8, 8), (16, 4), (16, 8), (32, 4), (64, 4))
"""Hosts and planes."""
_MANY = 64
_STANDARD_RATES = ((8, 4, 25_000_000), (16, 4, 12_500_000), (32, 4, 6_250_000), (16, 4, 25_000_000))


def render_calibration(found: Calibration) -> RenderableType:
    """A line and a table for each transport that was measured, for a rich console."""
    measured = [TRANSPORTS[word] for word in sorted(found.transports) if word in TRANSPORTS]
    return Group(*(part for transport in measured for part in _of_transport(found, transport)))


def _of_transport(found: Calibration, transport: Transport) -> Iterator[RenderableType]:
    table = plain_table()
    table.add_column(f"fabric, over {transport}")
    for heading in ("port rate", "rtt", "packets/s", "CPUs", "share of budget"):
        table.add_column(heading, justify="right", no_wrap=True)
    capacity = found.capacity(transport.cost)
    standard = ((hosts, planes, rate, 20_000_000 * 25_000_000 // rate) for hosts, planes, rate in _STANDARD_RATES)
    suggested = ((hosts, planes, *suggest(planes, hosts, capacity)) for hosts, planes in _SIZES)
    for fabric in (*standard, *suggested):
        table.add_row(*_row(*fabric, capacity, transport))
    yield from (_headline(found, transport), "", table, "")


def budget_lines() -> Iterator[str]:
    """What this machine carries over each transport, and how that is known."""
    for transport in TRANSPORTS.values():
        capacity = machine_capacity(transport.cost)
        yield f"{transport}: {_carried(capacity)} ({capacity.known_by})"


def _carried(capacity: Capacity) -> str:
    return f"{count_text(capacity.pps)} data packets/s of the standard training at any time, {carried_text(capacity)}"


def step_line(what: str, step: Step) -> str:
    """`mrc, 24,000 packets/s: held; the tightest figure, CPU pressure, 31 % inside its limit`."""
    load = f"{what}, {count_text(step.offered_pps)} packets/s"
    if not step.carried:
        return f"{load}: not carried: {step.reason}"
    word = "held" if step.held else "carried without room"
    return f"{load}: {word}; the tightest figure, {step.worst}, {step.margin:.0%} inside its limit"


def _headline(found: Calibration, transport: Transport) -> str:
    load = found.transports[transport]
    lasting = lasting_pps(load.steps)
    held = [step for step in load.steps if step.held and step.offered_pps == lasting]
    more = "" if any(not step.carried for step in load.steps) else " at least"
    parts = (found.host, f"{found.cpus} CPUs", f"kernel {found.kernel}", load.switch_ports)
    about = ", ".join(part for part in parts if part)
    if not held:
        return f"This machine ({about}) carried nothing with room over {transport}. Measured {load.measured}."
    return (
        f"This machine ({about}) carries{more} {_carried(found.capacity(transport.cost))}, over {transport}: "
        f"{count_text(lasting)} packets/s were held each of {len(held)} times, at least "
        f"{min(step.margin for step in held):.0%} inside the limits of the fidelity verdict. Measured {load.measured}. "
        f"{_among_many(found, transport)}."
    )


def _among_many(found: Calibration, transport: Transport) -> str:
    cost = found.capacity(transport.cost).cost
    costs = f"a packet costs {crowding(_MANY, cost):.2f} times as much as one among {FEW_HOSTS}"
    if not found.crowd:
        return f"Among {_MANY} hosts {costs} (usual, not measured)"
    known = found.crowd
    return (
        f"Among {_MANY} hosts {costs}: {known.hosts} carry {count_text(known.pps)} data packets/s of a permutation over"
        f" {STANDARD_COST.of} at any time, measured {known.measured}"
    )


def _row(hosts: int, planes: int, rate: int, rtt: int, capacity: Capacity, transport: Transport) -> tuple[str, ...]:
    shape = clos2_shape(planes, 2, 4, hosts // 2, rate, rtt, *usual_packet(transport))
    takes = cpus(shape, full_load(shape), capacity.cost)
    share = f"{takes / capacity.cpus:.0%}"
    name = f"{hosts} hosts x {planes} planes"
    return (
        name,
        rate_text(rate),
        time_text(rtt),
        count_text(shape.fabric_pps),
        f"{takes:.2f}",
        f"{share}, {capacity.fit(takes)}",
    )
