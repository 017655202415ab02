"""What a design does to those who use it: latency, what a lost part takes from a node, how much of it a QP uses."""

from __future__ import annotations

from math import ceil

from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, derived, exact


def one_way_latency(clos: Clos, one: MarkedNumber, three: MarkedNumber) -> MarkedNumber:
    """Between the NICs farthest apart, in us. `one`, `three`: measured through one switch and through three; each
    further switch with its cable takes half of what lies between them."""
    further = (clos.longest_path - 1) / 2
    return derived(
        "us",
        "latency through one switch, and the same more for every switch and cable",
        lambda latency_one_switch, latency_three_switches: (
            latency_one_switch + further * (latency_three_switches - latency_one_switch)
        ),
        latency_one_switch=one,
        latency_three_switches=three,
    )


def uplink_loss_in_plane(clos: Clos) -> MarkedNumber | None:
    """Share of what a node can send to other T0s in one plane that a lost T0-T1 link takes, in percent; None with one
    tier. This is the share that the MRC paper quotes."""
    return exact(100 / clos.half, "%", "1 / uplinks of a T0") if clos.tiers > 1 else None


def uplink_loss(clos: Clos) -> MarkedNumber | None:
    """The same of everything that the node can send, in percent."""
    return exact(100 / clos.half / clos.planes, "%", "1 / uplinks of a T0 / planes") if clos.tiers > 1 else None


def t1_loss(clos: Clos) -> MarkedNumber | None:
    """Share of what a node can send to other T0s in one plane that a lost T1 takes at most, in percent; None with one
    tier."""
    if clos.tiers == 1:
        return None
    most = ceil(clos.half / min(clos.half, clos.tier_switches[1] // clos.planes))
    return exact(100 * most / clos.half, "%", "most links of a T0 to one T1 / uplinks of a T0")


def port_loss(clos: Clos) -> MarkedNumber:
    """Share of a node's bandwidth that a lost NIC-T0 link or T0 takes, in percent. 100: its QPs die."""
    return exact(100 / clos.planes, "%", "1 / planes")


def nic_loss() -> MarkedNumber:
    """The same of a lost NIC, or of its one transceiver, which has the lanes of all planes in it."""
    return exact(100, "%", "all planes of a NIC leave by one transceiver")


def ev_share(clos: Clos, evs: MarkedNumber) -> MarkedNumber:
    """Share of the paths between a pair that a QP with `evs` EVs uses, in percent."""
    return derived("%", "EVs / paths, 100 % at most", lambda evs: min(100.0, 100 * evs / clos.paths), evs=evs)
