"""The seam between a peer's EVs and the policy that chooses among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mrc_testbed.hosts.mrc.paths import Path

NO_PLANE = -1
"""Instead of a plane: none has an EV that may carry data."""


class EvSelection(Protocol):
    """Chooses the EV of every data packet to one peer; all QPs to that peer share one selection.

    It is made with an `EvSet` (hosts/mrc/evselect/evset.py), whose `paths` are the EVs that may carry data at the
    moment. The core alone decides which these are: it retires an EV on a loss and brings it back after probes, takes a
    plane out with its port, and heeds the denylist. It refuses an EV outside of `paths`, which ends the run.

    Times are integer ns of the endpoint's clock. No method may wait, read a clock or draw from another generator than
    `EvSet.prng`. A class that inherits from this one overrides what it needs: `turn` and `take`, and mostly `changed`.
    """

    turn: int
    """Plane of the next packet, NO_PLANE while `EvSet.paths` is empty. The core waits until the port of this plane has
    room, and only then calls `take`, once for each packet."""
    uses_skip: bool = False
    """Does it rest EVs with `EvSet.skip`? Else a returning EV whose last probe was marked comes back as GOOD."""
    retires: bool = True
    """Does a lost packet retire its EV? Where it does not, EVs stay as they are whatever they lose, and `on_loss` is
    all that comes of it. A controller, and a peer that asks not to use an EV any more, are heeded all the same."""
    uses_round_trips: bool = False
    """Does it hear `on_round_trip`?"""

    def take(self, avoid: Path | None = None) -> Path:
        """The EV of the next packet, of plane `turn`, then move on `turn`. `avoid` is the EV that the last attempt of a
        retransmission took: return another one of the plane or, if it has none, of any plane that can be used, and let
        `turn` be."""
        ...

    def changed(self) -> None:
        """`EvSet.paths` is another: EVs or planes came or went."""
        return

    def enter(self, path: Path) -> None:
        """An EV may carry data from now on, as far as its plane is open. Called for every EV at the beginning."""
        self.changed()

    def leave(self, path: Path) -> None:
        """An EV may not carry data any more: it lost a packet or was denied."""
        self.changed()

    def open(self, plane: int) -> None:
        """A plane has ports at both ends again."""
        self.changed()

    def close(self, plane: int) -> None:
        """A plane lost a port at either end. Its EVs keep their states and wait."""
        self.changed()

    def active(self, plane: int) -> Sequence[Path]:
        """The EVs of an open plane that answers and probes may take; an empty one means all that may carry
        data."""
        return ()

    def on_congestion(self, path: Path, trimmed: bool, sent_ns: int, now_ns: int) -> None:
        """A packet sent on `path` at `sent_ns` met a queue: a SACK says that it was marked, or a NACK that a switch
        `trimmed` it before the last hop. Not called for an EV that may not carry data."""
        return

    def on_arrival(self, path: Path, sent_ns: int) -> None:
        """A SACK says that the packet that caused it, sent on `path` at `sent_ns`, arrived unmarked."""
        return

    def on_round_trip(self, path: Path, sent_ns: int, rtt_ns: int, now_ns: int) -> None:
        """A packet sent on `path` at `sent_ns` took `rtt_ns` to be acknowledged: the one that caused a SACK, or the
        oldest of those that a SACK made known, whose time has up to T/4 of waiting for that SACK in it. Only called if
        `uses_round_trips`."""
        return

    def on_loss(self, path: Path, sent_ns: int, now_ns: int) -> None:
        """A packet sent on `path` at `sent_ns` vanished without explanation. `leave` follows, unless the EV has left
        already, its plane would keep too few EVs (`ev_min_active`), or the selection `retires` none."""
        return
