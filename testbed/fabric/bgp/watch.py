"""How complete the routes are that BGP has given the switches with a choice, and each change of that with its time.

With two tiers those are the T0s; with more all but the highest, which hear of each T0 or pod from their own neighbours.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric.batch import query
from mrc_testbed.testbed.fabric.bgp.learned import learned_routes
from mrc_testbed.testbed.fabric.sandbox import network_of
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.plan import Plan

LIMIT_S = 30
"""Time that BGP has to find all routes."""
_GROUP_OF_IPV6_ROUTES = 0x400
"""RTMGRP_IPV6_ROUTE (linux/rtnetlink.h)."""
_READ_BYTES = 1 << 16
_ASK = ["ip", "-6", "-j", "route", "show", "proto", "bgp"]
_UNUSED = {"dead", "linkdown"}


class RouteChange(NamedTuple):
    """A switch has `next_hops` of the `of` that it has when nothing is broken."""

    t_ns: int
    node: str
    next_hops: int
    of: int


class RouteWatch:
    """Hears of changes by a socket in each switch below the highest tier, which a loop may watch, and reads the routes
    again after each."""

    def __init__(self, plan: Plan, options: FabricOptions, pids: Mapping[str, int]) -> None:
        top = len(plan.shape.family.tiers) - 1
        self._all = {
            switch.name: sum(len(route.hops) for route in learned_routes(plan, switch.name, options.bgp))
            for switch in plan.switches
            if switch.tier < max(top, 1)
        }
        self._pids = {node: pids[node] for node in self._all}
        self._held = dict.fromkeys(self._all, 0)
        self._changes: list[RouteChange] = []
        self.sockets = {node: _listening(pid, node) for node, pid in self._pids.items()}

    def on_readable(self, node: str) -> None:
        """Read what has changed. Raises FabricError."""
        try:
            while self.sockets[node].recv(_READ_BYTES, socket.MSG_DONTWAIT):
                pass
        except BlockingIOError:
            pass
        except OSError:  # more came than the socket holds: what there is now is read all the same
            pass
        held = _count(query(_ASK, {node: self._pids[node]})[node])
        if held != self._held[node]:
            self._held[node] = held
            self._changes.append(RouteChange(time.monotonic_ns(), node, held, self._all[node]))

    def handlers(self) -> Iterator[tuple[socket.socket, Callable[[], None]]]:
        """Each socket, and what to call when it is readable."""
        return ((each, lambda node=node: self.on_readable(node)) for node, each in self.sockets.items())  # type: ignore[misc]

    def take(self) -> list[RouteChange]:
        """The changes since the last call."""
        taken, self._changes = self._changes, []
        return taken

    @property
    def complete(self) -> bool:
        """True if every one of them has every next hop."""
        return self._held == self._all

    def require(self) -> None:
        """Raises FabricError naming the first that lacks next hops."""
        for node, of in self._all.items():
            if self._held[node] != of:
                lacks = f"BGP has given it {self._held[node]} of {of} next hops within {LIMIT_S} s"
                raise FabricError(node, "wait for its routes", lacks)

    def wait(self, limit_s: float = LIMIT_S) -> None:
        """Until all are complete, or raise FabricError. Who has a loop need not wait here."""
        by_descriptor = {each.fileno(): node for node, each in self.sockets.items()}
        news = select.poll()
        for descriptor, node in by_descriptor.items():
            news.register(descriptor, select.POLLIN)
            self.on_readable(node)  # what changed before may wait to be heard
        deadline = time.monotonic() + limit_s
        while not self.complete and (left := deadline - time.monotonic()) > 0:
            for descriptor, _ in news.poll(left * 1000):
                self.on_readable(by_descriptor[descriptor])
        self.require()


def _listening(pid: int, node: str) -> socket.socket:
    with network_of(pid, node):
        found = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    found.bind((0, _GROUP_OF_IPV6_ROUTES))
    return found


def _count(text: str) -> int:
    hops = (hop for route in json.loads(text or "[]") for hop in route.get("nexthops", [route]))
    return sum(1 for hop in hops if "gateway" in hop and not _UNUSED.intersection(hop.get("flags", ())))
