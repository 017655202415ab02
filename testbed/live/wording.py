"""Ticker texts for bursts of events. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mrc_testbed.testbed.live.paths import HASHED, LOCAL
from mrc_testbed.testbed.live.ticker import Burst, named

_SHOWN_SWITCHES = 2
_IN_USE = ("GOOD", "SKIP")
_TOLD = {
    **{(old, "ASSUMED_BAD"): "retired" for old in _IN_USE},
    **{("ASSUMED_BAD", new): "restored" for new in _IN_USE},
    **{(old, "DENIED"): "denied" for old in (*_IN_USE, "ASSUMED_BAD")},
    ("DENIED", "ASSUMED_BAD"): "allowed again, to be probed",
}
"""EV changes that are shown; the others are congestion, which changes many times a second."""


def told_of(old: str, new: str) -> str:
    """The verb for this EV change, empty if it is not shown."""
    return _TOLD.get((old, new), "")


def evs(burst: Burst, verb: str, plane: int) -> str:
    """8 EVs of p1-t1-3 retired by 5 hosts."""
    return f"{_many(burst.count, 'EV')} of {_switches(plane, burst.places)} {verb} by {burst.by}"


def floor(burst: Burst, plane: int) -> str:
    """EVs that lost a packet and stay in use as the last of their plane."""
    where = _switches(plane, burst.places)
    return f"{where} loses packets and stays in use at {burst.by}: no other is left in plane {plane}"


def planes(burst: Burst, plane: int, usable: bool) -> str:
    """A plane that pairs of hosts have lost or regained."""
    ends = named(burst.places, "pairs of hosts")
    return f"plane {plane} {'usable again' if usable else 'lost'} between {ends}"


def ports(burst: Burst, plane: int, state: str) -> str:
    """NIC ports that went down or up."""
    words = {"RISING": "has carrier again"}.get(state, state.lower())
    return f"port {plane} of {burst.by} {words}"


def failover(burst: Burst, plane: int, state: str, carrier: int) -> str:
    """QPs whose library left a dead port, waits for it, or has it back."""
    words = {
        "OK": f"use port {plane} again",
        "HOLDING": f"wait for port {plane}",
        "RECOVERING": f"move from port {plane} to {carrier}, and ask for it",
        "LOST": f"do without port {plane}, for good",
    }[state]
    return f"{_many(len(burst.places), 'QP')} at {burst.by}: {words}"


def _switches(plane: int, places: Iterable[object]) -> str:
    """The switches of tiles (`mrc_testbed.testbed.live.paths`)."""
    found = [str(place) for place in places]
    if len(found) > _SHOWN_SWITCHES:
        return f"plane {plane}"
    named = {HASHED: f"plane {plane}", LOCAL: f"plane {plane} in a group", "": f"plane {plane}"}
    return " and ".join(named.get(place) or f"p{plane}-{place}" for place in found)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
