"""How long BGP takes and how much it says as neighbours grow: one plane with 2, 4 and 8 T0 groups.

    sudo .venv/bin/python -m benchmarks.bgp_neighbours [--groups 2,4,8] [--t1-as one] [--rounds 3]

Four T1, four hosts a T0, no other traffic. Each round cuts the link from a T1 to the last T0 (its carrier goes), heals
it, takes the T1 off and starts it again. Of each: the time until the last T0 changed a route, from the cut, the heal or
the start of the T1; UPDATE messages of all sessions, as daemons count them; and bytes on the links between switches,
frames of TCP and its acknowledgements, less what they carry while nothing happens. Times are least / median / most of
all rounds, counts the median.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from benchmarks.routing import spread
from mrc_testbed.testbed.checks.counts import route_updates
from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.bgp.messages import BgpMessages
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.testbed.switching.options import BgpOptions
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing

T1, HOSTS = 4, 4
QUIET_S = 3
"""After what happened: by then BGP has said all; a keepalive interval, so that each session has had one."""
SENT_BYTES = 5
"""Its place in a row of `sample_ports`."""


@dataclass(frozen=True)
class Talk:
    """What came of one event."""

    took_s: float
    updates: int
    wire_bytes: float


class Plane:
    """The fabric, and what its switches have said."""

    def __init__(self, groups: int, t1_as: Literal["one", "each"]) -> None:
        shape = clos2_shape(1, groups, T1, HOSTS, 25_000_000, 0)
        options = capabilities.choose(capabilities.probe(), shape)
        self.fabric = Fabric.build(build_plan(shape, Routing.BGP), replace(options, bgp=BgpOptions(t1_as=t1_as)))
        built = time.monotonic()
        self.fabric.converge()
        took_s = self._last_change(built)
        time.sleep(QUIET_S)
        updates = route_updates(BgpMessages(dict(self._pids())).counts())
        self.start = Talk(took_s, updates, self._wire_bytes())
        self.fabric.prepare_faults(self.fabric.plan.node_names)
        self.idle_bytes_s = self._idle()

    def _pids(self) -> Iterator[tuple[str, int]]:
        return ((switch, self.fabric.pids[switch]) for switch in self.fabric.plan.switch_by_name)

    def _wire_bytes(self) -> int:
        """That all ports between switches have sent."""
        between = {end for link in self.fabric.plan.links if not link.is_host_link for end in link.ends}
        ports = {(end.node, end.name) for end in between}
        return sum(int(row[SENT_BYTES]) for row in self.fabric.sample_ports() if row[:2] in ports)

    def _idle(self) -> float:
        """Bytes a second while nothing happens, over three keepalives."""
        before = self._wire_bytes()
        time.sleep(3 * QUIET_S)
        return (self._wire_bytes() - before) / (3 * QUIET_S)

    def _last_change(self, since: float) -> float:
        """From then to the last change of a route, s; 0 without any."""
        return max((change.t_ns / 1e9 - since for change in self.fabric.route_changes()), default=0.0)

    def after(self, event: Callable[[], object], full: bool) -> Talk:
        """Do it, wait until BGP has nothing more to say, and `full`: until all routes are there."""
        self.fabric.route_changes()
        self.fabric.count_route_updates()
        bytes_before, begun = self._wire_bytes(), time.monotonic()
        event()
        done = time.monotonic()
        if full:
            self.fabric.converge()
        self._listen(QUIET_S)
        wire = self._wire_bytes() - bytes_before - self.idle_bytes_s * (time.monotonic() - begun)
        return Talk(self._last_change(done if full else begun), route_updates(self.fabric.route_updates()), wire)

    def _listen(self, seconds: float) -> None:
        """Hear of changes of routes as they come."""
        end = time.monotonic() + seconds
        routes = self.fabric.routes
        while routes is not None and time.monotonic() < end:
            for node in routes.sockets:
                routes.on_readable(node)
            time.sleep(0.005)


def rounds_of(plane: Plane, rounds: int) -> dict[str, list[Talk]]:
    """Each event in each round."""
    fabric, found = plane.fabric, dict[str, list[Talk]]()
    port = fabric.plan.link_by_name[f"p0-t0-{fabric.plan.shape.family.tiers[0] - 1}:p0-t1-1"].far
    t1_ports = [own for own, _ in fabric.plan.ports["p0-t1-1"]]
    events: tuple[tuple[str, Callable[[], object], bool], ...] = (
        ("link cut", lambda: fabric.ports_down([port]), False),
        ("link healed", lambda: fabric.ports_up([port]), True),
        ("T1 started again", lambda: reboot(fabric, t1_ports), True),
    )
    for _ in range(rounds):
        for name, event, full in events:
            found.setdefault(name, []).append(plane.after(event, full))
    return found


def reboot(fabric: Fabric, ports: Sequence[object]) -> None:
    """A T1 is off for as long as its neighbours need to forget it."""
    fabric.switch_off("p0-t1-1")
    time.sleep(QUIET_S)
    fabric.switch_on("p0-t1-1", ports)  # type: ignore[arg-type]


def report(groups: int, t1_as: Literal["one", "each"], rounds: int) -> int:
    """Lines of the table for one size."""
    plane = Plane(groups, t1_as)
    for name, talks in {"start": [plane.start], **rounds_of(plane, rounds)}.items():
        updates = statistics.median(talk.updates for talk in talks)
        kib = statistics.median(talk.wire_bytes for talk in talks) / 1024
        took = spread([talk.took_s for talk in talks])
        print(f"| {groups} | {t1_as} | {name} | {took} | {updates:g} | {kib:.1f} KiB |", flush=True)
    print(f"  {groups * T1} sessions, {plane.idle_bytes_s:.0f} bytes a second while nothing happens", flush=True)
    return 0


def main(groups: Sequence[int], systems: Sequence[str], rounds: int) -> int:
    """Every size, each in a sandbox of its own."""
    print("| T0 groups | AS of T1s | event | last route after | UPDATEs | on the wire |")
    print("|---|---|---|---|---|---|", flush=True)
    for t1_as in systems:
        for size in groups:
            run_isolated(lambda size=size, t1_as=t1_as: report(size, t1_as, rounds))  # type: ignore[misc]
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", default="2,4,8", help="T0 groups, separated by commas")
    parser.add_argument("--t1-as", default="one", help="one autonomous system for all T1, or each its own")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    sys.exit(main([int(one) for one in given.groups.split(",")], given.t1_as.split(","), given.rounds))
