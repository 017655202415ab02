"""The kinds of incidents, each with how it is drawn: a fault as a scenario has it, somewhere in a fabric and of some
severity.

Amounts are log-uniform, so that faint ones are as common as plain ones. Targets are drawn from all there are of their
kind: a fabric of any family will do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mrc_testbed.testbed.incidents.dice import Dice
from mrc_testbed.topos.nodes import Link
from mrc_testbed.topos.plan import Plan

LEAST_S = 0.4
"""The shortest time that an incident lasts."""


class Spell(NamedTuple):
    """When an incident is on, in seconds from the workload's start."""

    begin_s: float
    end_s: float

    @property
    def for_s(self) -> float:
        """How long."""
        return self.end_s - self.begin_s


@dataclass(frozen=True, slots=True)
class Scene:
    """What a fault is drawn for: the fabric, the hosts that take part and the peers of each. `crowded`: hosts that
    several send to at once."""

    plan: Plan
    peers: Mapping[str, Sequence[str]]
    crowded: Sequence[str] = ()

    @property
    def switch_links(self) -> list[Link]:
        """Links between switches."""
        return [link for link in self.plan.links if not link.is_host_link]

    @property
    def host_links(self) -> list[Link]:
        """NIC ports of hosts that take part."""
        return [link for link in self.plan.links if link.is_host_link and link.near.node in self.peers]

    def switches(self, *tiers: int) -> list[str]:
        """Of these tiers; of all without one."""
        return [switch.name for switch in self.plan.switches if switch.tier in tiers or not tiers]

    @property
    def queues(self) -> list[str]:
        """T0s before a crowded host."""
        return [link.far.node for link in self.host_links if link.near.node in self.crowded]


Entry = dict[str, Any]
DrawEntry = Callable[[Dice, Scene, Spell], Entry]


@dataclass(frozen=True, slots=True)
class IncidentKind:
    """`word`: what `--kind` calls it; `fault`: the kind of fault, and what an answer calls it; `about`: for people."""

    word: str
    fault: str
    about: str
    draw: DrawEntry


def _share(share: float) -> str:
    return f"{share * 100:.3g}%"


def _time(seconds: float) -> str:
    return f"{max(round(seconds * 1000), 1)}ms"


def _link(dice: Dice, links: Sequence[Link]) -> str:
    return dice.one(links).name


def _lasting(fault: str, target: str, span: Spell, **more: Any) -> Entry:
    return {"at": _time(span.begin_s), fault: target, "for": _time(span.for_s), **more}


def _flaps(fault: str, target: str, span: Spell, dice: Dice, **more: Any) -> Entry:
    """As often as its time holds, each time for half of a period."""
    period_s = dice.magnitude(0.2, 5.0)
    count = max(int(span.for_s / period_s), 1)
    when = {"at": _time(span.begin_s), "period": _time(period_s), "count": count, "jitter": "20%"}
    return {**when, fault: target, **more}


def _transceiver(dice: Dice, scene: Scene, span: Spell) -> Entry:
    t0 = dice.one(scene.switches(0))
    ports = sum(1 for link in scene.plan.links_of(t0) if link.is_host_link)
    count = dice.whole(1, min(4, ports))
    return _flaps("transceiver-flap", t0, span, dice, ports=count, first=dice.whole(0, ports - count))


def _slow(dice: Dice, link: Link, span: Spell) -> Entry:
    rate = max(round(link.rate_bps * dice.magnitude(0.1, 0.8)), 100_000)
    return _lasting("link-rate", link.name, span, rate=f"{rate}bit")


def _ev(dice: Dice, scene: Scene, span: Spell) -> Entry:
    groups = {host.name: host.group for host in scene.plan.hosts}
    senders = [h for h, peers in scene.peers.items() if any(groups[p] != groups[h] for p in peers)] or [*scene.peers]
    uplink = dice.one(scene.switches(1))
    return _lasting("ev-loss", uplink, span, **{"from": dice.one(senders), "loss": _share(dice.magnitude(0.1, 1))})


def _deny(dice: Dice, scene: Scene, span: Spell) -> Entry:
    return _lasting("deny", dice.one(scene.switches(1)), span)


def _entry(fault: str, dice: Dice, scene: Scene, span: Spell) -> Entry:
    link = dice.one([*scene.switch_links, *scene.host_links])
    return _lasting(fault, link.name, span, direction="down" if link.is_host_link else dice.one(["up", "down"]))


def _queueing(dice: Dice, scene: Scene) -> str:
    """A switch for a fault without effect where nothing waits: mostly one where much does, if there is one."""
    queues = scene.queues
    return dice.one(queues) if queues and dice.often(0.8) else dice.one(scene.switches())


def _pause(dice: Dice, scene: Scene, span: Spell) -> Entry:
    """Shorter than others."""
    pause = Spell(span.begin_s, span.begin_s + dice.magnitude(0.05, 0.5))
    return _lasting("host-pause", dice.one([*scene.peers]), pause)


_DRAWS: Mapping[str, tuple[str, str, DrawEntry]] = {
    "link-down": (
        "link-down",
        "a link between switches is dead, and only its own ends could know",
        lambda d, s, t: _lasting("link-down", _link(d, s.switch_links), t),
    ),
    "link-loss": (
        "link-loss",
        "a link between switches loses 0.1 to 20 % both ways",
        lambda d, s, t: _lasting("link-loss", _link(d, s.switch_links), t, loss=_share(d.magnitude(0.001, 0.2))),
    ),
    "one-way": (
        "one-way",
        "a link between switches loses everything one way",
        lambda d, s, t: _lasting("one-way", _link(d, s.switch_links), t, direction=d.one(["up", "down"])),
    ),
    "link-flap": (
        "link-flap",
        "a link between switches goes down and up every 0.2 to 5 s",
        lambda d, s, t: _flaps("link-flap", _link(d, s.switch_links), t, d),
    ),
    "transceiver-flap": (
        "transceiver-flap",
        "one to four NIC ports of a T0 lose and find light together",
        _transceiver,
    ),
    "port-flap": (
        "port-flap",
        "a NIC port goes down and up",
        lambda d, s, t: _flaps("port-flap", _link(d, s.host_links), t, d),
    ),
    "port-loss": (
        "link-loss",
        "a NIC port loses 0.1 to 20 % both ways",
        lambda d, s, t: _lasting("link-loss", _link(d, s.host_links), t, loss=_share(d.magnitude(0.001, 0.2))),
    ),
    "link-rate": (
        "link-rate",
        "a link between switches carries 10 to 80 % of its rate",
        lambda d, s, t: _slow(d, d.one(s.switch_links), t),
    ),
    "port-rate": (
        "link-rate",
        "a NIC port carries 10 to 80 % of its rate",
        lambda d, s, t: _slow(d, d.one(s.host_links), t),
    ),
    "t1-silent": (
        "switch-silent",
        "a switch above the T0s drops everything and says nothing",
        lambda d, s, t: _lasting("switch-silent", d.one([n for n in s.switches() if n not in s.switches(0)]), t),
    ),
    "t0-silent": (
        "switch-silent",
        "a T0 drops everything and says nothing",
        lambda d, s, t: _lasting("switch-silent", d.one(s.switches(0)), t),
    ),
    "switch-reboot": (
        "switch-reboot",
        "a switch reboots, for 0.5 to 5 s",
        lambda d, s, t: {
            "at": _time(t.begin_s),
            "switch-reboot": d.one(s.switches()),
            "boot": _time(min(d.magnitude(0.5, 5), t.for_s)),
        },
    ),
    "corrupt": (
        "corrupt",
        "a link between switches flips bits in 0.1 to 20 % of the data packets",
        lambda d, s, t: _lasting("corrupt", _link(d, s.switch_links), t, share=_share(d.magnitude(0.001, 0.2))),
    ),
    "plane-loss": (
        "plane-loss",
        "all NICs lose 0.1 to 5 % of the packets from one plane",
        lambda d, s, t: _lasting(
            "plane-loss", f"p{d.whole(0, s.plan.shape.planes - 1)}", t, loss=_share(d.magnitude(0.001, 0.05))
        ),
    ),
    "ev-loss": ("ev-loss", "one sender's packets over one T1 of a plane are lost, 10 % of them to all", _ev),
    "deny": ("deny", "paths over a T1 stay denied, and nothing is broken", _deny),
    "entry-missing": (
        "entry-missing",
        "the table of a switch lacks an entry",
        lambda d, s, t: _entry("entry-missing", d, s, t),
    ),
    "entry-wrong": (
        "entry-wrong",
        "an entry of a switch leads out of the wrong port",
        lambda d, s, t: _entry("entry-wrong", d, s, t),
    ),
    "cables-swapped": (
        "cables-swapped",
        "two cables at a switch have changed places",
        lambda d, s, t: _lasting("cables-swapped", _link(d, s.switch_links), t),
    ),
    "ecn-stuck": (
        "ecn-stuck",
        "a switch marks everything, or nothing",
        lambda d, s, t: _lasting("ecn-stuck", _queueing(d, s), t, marks=d.one(["never", "always"])),
    ),
    "trim-off": (
        "trim-off",
        "a switch trims nothing, and drops instead",
        lambda d, s, t: _lasting("trim-off", _queueing(d, s), t),
    ),
    "shallow-buffer": (
        "shallow-buffer",
        "a switch drops data above 0.05 to 0.5 plane-BDP",
        lambda d, s, t: _lasting("shallow-buffer", _queueing(d, s), t, drop=d.magnitude(0.05, 0.5)),
    ),
    "host-slow": (
        "host-slow",
        "a host needs 0.2 to 2 ms for each packet",
        lambda d, s, t: _lasting("host-slow", d.one([*s.peers]), t, per_packet=f"{round(d.magnitude(200, 2000))}us"),
    ),
    "host-pause": ("host-pause", "a host does nothing for 50 to 500 ms", _pause),
}

INCIDENT_KINDS: Mapping[str, IncidentKind] = {word: IncidentKind(word, *rest) for word, rest in _DRAWS.items()}
"""By word, in the order of the list in docs/incidents.md."""
WHERE_QUEUES_ARE = ("ecn-stuck", "trim-off", "shallow-buffer")
"""Nothing comes of these where nothing waits."""
WHAT = tuple(dict.fromkeys(kind.fault for kind in INCIDENT_KINDS.values()))
"""The words of `what` in an answer."""
