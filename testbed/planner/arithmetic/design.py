"""One design, worked out: every number of it with its mark."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil

from mrc_testbed.testbed.planner.arithmetic import effects
from mrc_testbed.testbed.planner.arithmetic.clos import Clos
from mrc_testbed.testbed.planner.arithmetic.numbers import MarkedNumber, Provenance, derived, exact
from mrc_testbed.testbed.planner.arithmetic.parts import PartsList, SwitchPart, Transceiver
from mrc_testbed.testbed.planner.arithmetic.prices import Prices


class NicCable(StrEnum):
    """What joins a NIC and its T0s: fibre with a transceiver on each end, or passive copper."""

    OPTICS = "optics"
    DAC = "dac"


@dataclass(frozen=True, slots=True)
class Design:
    """A fabric and what it is made of. `nic_gbps`: of a NIC, over all planes."""

    clos: Clos
    nic_gbps: int
    switch: SwitchPart
    transceiver: Transceiver
    nic_cable: NicCable
    parts: PartsList
    prices: Prices | None = None

    @property
    def port_gbps(self) -> int:
        return self.nic_gbps // self.clos.planes

    @property
    def fibre_layers(self) -> int:
        """Layers of cables that have a transceiver on each end."""
        return self.clos.tiers - (self.nic_cable is NicCable.DAC)

    @property
    def modules_of_nic(self) -> int:
        """Transceivers, or copper cables, that a NIC has for itself; the last may be partly used."""
        return ceil(self.nic_gbps / self.transceiver.rate_gbps)

    @property
    def modules(self) -> int:
        """Whole transceivers: a NIC shares its own with no other NIC, ports of one switch share one (breakout)."""
        counts, layers = self.clos.tier_switches, range(self.clos.tiers)
        fibres = layers if self.nic_cable is NicCable.OPTICS else layers[1:]
        below = sum(self._modules_of_tier(counts[layer - 1]) for layer in fibres if layer)
        above = sum(self._modules_of_tier(counts[layer]) for layer in fibres)
        return below + above + (self.clos.nics * self.modules_of_nic if 0 in fibres else 0)

    def _modules_of_tier(self, switches: int) -> int:
        """Of one layer of links at its `switches` on one side, all planes, if they share its links evenly."""
        links, more = divmod(self.clos.nics * self.clos.planes, switches)
        fewer, most = (ceil(count * self.port_gbps / self.transceiver.rate_gbps) for count in (links, links + 1))
        return more * most + (switches - more) * fewer

    @property
    def copper_cables(self) -> int:
        """Copper cables, each with the rate of a transceiver."""
        return self.clos.nics * self.modules_of_nic if self.nic_cable is NicCable.DAC else 0

    def part_numbers(self) -> dict[str, MarkedNumber]:
        """The numbers of parts by the names under which derived ones rest on them."""
        return {
            "switch_watts": self.switch.watts,
            "transceiver_watts": self.transceiver.watts,
            "lasers_a_lane": self.parts.lasers_a_lane,
            "latency_one_switch": self.parts.latency[0],
            "latency_three_switches": self.parts.latency[1],
            "evs": self.parts.evs,
        }

    def numbers(self) -> dict[str, MarkedNumber | None]:
        """Every number by its key. None: there is no such thing in this design."""
        return {**self._counts(), **self._optics(), **self._power(), **self._cost(), **self._use(), **self._losses()}

    def _counts(self) -> dict[str, MarkedNumber | None]:
        clos = self.clos
        tiers = {
            f"switches_t{tier}": exact(count, "switches", "switches of one tier, all planes")
            for tier, count in enumerate(clos.tier_switches)
        }
        return {
            "switch_ports": exact(clos.ports, "ports", "switch / port speed, or the logical ports if fewer"),
            "most_nics": exact(clos.most_nics, "NICs", "half the ports to the power of the tiers but one, x ports"),
            "switches": exact(clos.switches, "switches", "sum of the tiers"),
            **tiers,
            "even_switches": exact(sum(clos.even_switches), "switches", "whole pods, uplinks divided evenly"),
            "switches_a_nic": exact(clos.switches / clos.nics, "switches", "switches / NICs"),
            "links": exact(clos.links, "links", "NICs x tiers x planes"),
            "links_a_nic": exact(clos.links / clos.nics, "links", "tiers x planes"),
        }

    def _optics(self) -> dict[str, MarkedNumber | None]:
        lanes = self.nic_gbps / self.parts.lane_gbps
        ends = 0 if self.nic_cable is NicCable.DAC else 2 * lanes
        module = f"of {self.transceiver.rate_gbps}G, whole ones at each NIC and switch, on each end of a fibre"
        return {
            "transceivers": exact(self.modules, "transceivers", module),
            "transceivers_a_nic": exact(self.modules / self.clos.nics, "transceivers", module),
            "lasers_to_t0_a_nic": self._lasers("lanes of the links from a NIC to its T0s, both ends", ends),
            "lasers": self._lasers("lanes of all fibres, both ends", 2 * lanes * self.fibre_layers * self.clos.nics),
        }

    def _lasers(self, how: str, lanes: float) -> MarkedNumber:
        each = self.parts.lasers_a_lane
        return derived("lasers", how, lambda lasers_a_lane: lanes * lasers_a_lane, lasers_a_lane=each)

    def _power(self) -> dict[str, MarkedNumber | None]:
        parts = {"switch_watts": self.switch.watts, "transceiver_watts": self.transceiver.watts}
        clos, modules = self.clos, self.modules

        def watts(switch_watts: float, transceiver_watts: float) -> float:
            return clos.switches * switch_watts + modules * transceiver_watts

        def watts_a_nic(switch_watts: float, transceiver_watts: float) -> float:
            return watts(switch_watts, transceiver_watts) / clos.nics

        return {
            "watts": derived("W", "switches and transceivers", watts, **parts),
            "watts_a_nic": derived("W", "switches and transceivers / NICs", watts_a_nic, **parts),
            "optics_share": self._optics_share(),
        }

    def _optics_share(self) -> MarkedNumber | None:
        """In percent. It grows with the transceivers' watts and falls with the switches', so those stay as they are."""
        fixed = self.clos.switches * self.switch.watts.value
        if fixed == 0:
            return None
        return derived(
            "%",
            "transceivers / (switches and transceivers)",
            lambda transceiver_watts: 100 / (1 + fixed / max(self.modules * transceiver_watts, 1e-9)),
            transceiver_watts=self.transceiver.watts,
        )

    def _cost(self) -> dict[str, MarkedNumber | None]:
        if self.prices is None:
            return {}
        cost = self.prices.of(self.clos, self.modules, self.copper_cables)
        unit, nics = self.prices.currency, self.clos.nics
        given = f"counts x prices of {self.prices.file}"
        return {
            "cost": MarkedNumber(cost, unit, Provenance.GIVEN, given, cost, cost),
            "cost_a_nic": MarkedNumber(cost / nics, unit, Provenance.GIVEN, given, cost / nics, cost / nics),
        }

    def _use(self) -> dict[str, MarkedNumber | None]:
        clos = self.clos
        return {
            "longest_path": exact(clos.longest_path, "switches", "2 x tiers - 1"),
            "latency": effects.one_way_latency(clos, *self.parts.latency),
            "nics_below_t0": exact(clos.nics_below_t0, "NICs", "ports of a T0 that go down"),
            "paths": exact(clos.paths, "paths", "planes x uplinks at each tier on the way up"),
            "ev_share": effects.ev_share(clos, self.parts.evs),
        }

    def _losses(self) -> dict[str, MarkedNumber | None]:
        return {
            "uplink_loss_in_plane": effects.uplink_loss_in_plane(self.clos),
            "uplink_loss": effects.uplink_loss(self.clos),
            "t1_loss_in_plane": effects.t1_loss(self.clos),
            "port_loss": effects.port_loss(self.clos),
            "t0_loss": effects.port_loss(self.clos),
            "nic_loss": effects.nic_loss(),
        }
