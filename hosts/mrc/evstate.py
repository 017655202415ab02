"""The life of an EV as a table (spec, figure 5, by its readers; docs/protocol.md, "Paths").

Two states may follow DENIED: the readers of the specification have an EV that is allowed again GOOD, ours has to pass
probes first (`endpoint.allow_to`).
"""

from __future__ import annotations

from enum import Enum

from mrc_testbed.hosts.common.transitions import step


class EvState(Enum):
    """May this path carry data? GOOD ones do; one in SKIP only when its plane has no GOOD one."""

    __hash__ = object.__hash__  # that of Enum is a call of Python, and the table is asked for many packets

    GOOD = "GOOD"
    SKIP = "SKIP"
    """Congested: passed over for about one rotation; see hosts/mrc/evselect for how long exactly."""
    ASSUMED_BAD = "ASSUMED_BAD"
    """Lost a packet without explanation: carries probes only."""
    DENIED = "DENIED"
    """Taken out by a controller; only the controller brings it back."""


class EvInput(Enum):
    """What can happen to an EV."""

    __hash__ = object.__hash__

    LOSS = "loss"
    """One packet lost without a trim notice is enough (P1 section 2.1)."""
    ALWAYS_SKIP = "always_skip"
    """The peer asks not to use it any more (m = ALWAYS_SKIP in a SACK)."""
    CONGESTED = "congested"
    """CE seen by the receiver, or the packet was trimmed before the last hop."""
    ROTATED = "rotated"
    """The rotation passed it over as often as its penalty asks."""
    PROBES_PASSED = "probes_passed"
    PROBE_CONGESTED = "probe_congested"
    """As PROBES_PASSED, but the last answer said that its probe was marked (m = SKIP_ONCE)."""
    DENY = "deny"
    ALLOW = "allow"
    ALLOW_GOOD = "allow good"
    """As ALLOW, of a controller that vouches for the path."""


TRANSITIONS: dict[tuple[EvState, EvInput], EvState] = {
    (EvState.GOOD, EvInput.LOSS): EvState.ASSUMED_BAD,
    (EvState.GOOD, EvInput.ALWAYS_SKIP): EvState.ASSUMED_BAD,
    (EvState.GOOD, EvInput.CONGESTED): EvState.SKIP,
    (EvState.GOOD, EvInput.DENY): EvState.DENIED,
    (EvState.SKIP, EvInput.LOSS): EvState.ASSUMED_BAD,
    (EvState.SKIP, EvInput.ALWAYS_SKIP): EvState.ASSUMED_BAD,
    (EvState.SKIP, EvInput.ROTATED): EvState.GOOD,
    (EvState.SKIP, EvInput.DENY): EvState.DENIED,
    (EvState.ASSUMED_BAD, EvInput.PROBES_PASSED): EvState.GOOD,
    (EvState.ASSUMED_BAD, EvInput.PROBE_CONGESTED): EvState.SKIP,
    (EvState.ASSUMED_BAD, EvInput.DENY): EvState.DENIED,
    # Ours: nobody knows how the path fared while it was denied, so probes must vouch for it.
    (EvState.DENIED, EvInput.ALLOW): EvState.ASSUMED_BAD,
    (EvState.DENIED, EvInput.ALLOW_GOOD): EvState.GOOD,
}


def next_state(state: EvState, event: EvInput) -> EvState:
    """The state after `event`; the same state where the table lacks the pair."""
    return step(TRANSITIONS, state, event) or state


IN_USE = (EvState.GOOD, EvState.SKIP)
"""States of EVs that the rotation holds."""
