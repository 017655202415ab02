"""What the parts of an endpoint see of each other. Types only, so that no part has to import the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mrc_testbed.hosts.mrc.evselect.base import EvSelection
from mrc_testbed.hosts.mrc.evselect.evset import EvSet
from mrc_testbed.hosts.mrc.inflight import Inflight
from mrc_testbed.hosts.mrc.paths import Path
from mrc_testbed.hosts.mrc.timing import Timing


class SenderView(Protocol):
    """A sender, for its peer."""

    flight: Inflight
    lost_packets: int
    qpn: int
    ready: bool
    selection: EvSelection

    def wake(self) -> None:
        """There may be something to send, and room to send it."""

    def resume(self, now_ns: int) -> None:
        """A plane can be used again."""

    def abandon(self, plane: int, now_ns: int) -> None:
        """The plane lost a port."""


class PortsView(Protocol):
    """The ports between this host and a peer."""

    def healthy(self, plane: int) -> bool:
        """Are the ports of both ends UP?"""

    def can_probe(self, plane: int) -> bool:
        """May a probe on this plane arrive?"""

    def on_probe_answer(self, plane: int, sent_ns: int, now_ns: int) -> None:
        """A probe sent at `sent_ns` over `plane` was answered."""


class ProberView(Protocol):
    """What sends EV probes."""

    def probe(self, path: Path, now_ns: int) -> int:
        """Send one probe on `path`; returns its request id."""


class ReverseView(Protocol):
    """The EVs of answers."""

    def learn(self, path: Path) -> None:
        """Something sent on `path` has arrived."""


class PeerView(Protocol):
    """A peer, for its own parts."""

    number: int
    paths: list[Path]
    timing: Timing
    evs: EvSet

    @property
    def senders(self) -> Sequence[SenderView]:
        """Of the QPs to this peer."""

    @property
    def ports(self) -> PortsView:
        """What is known of the ports."""

    @property
    def prober(self) -> ProberView:
        """Probes to this peer."""

    @property
    def reverse(self) -> ReverseView:
        """The way back."""

    def path_at(self, flow_label: int) -> Path:
        """The path with this EV[31:16], else another."""

    def port_changed(self, plane: int, now_ns: int) -> None:
        """A port of `plane` changed at either end."""

    def restore(self, path: Path, marked: bool, now_ns: int) -> None:
        """Enough probes on `path` were answered."""
