"""What failover tells of the ports of a connection, beside what all endpoints tell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class PortMoved:
    """The port of `plane` has another state for a QP, one of `mrc_testbed.hosts.rc.failover.RcPortState`. `carrier`:
    the plane whose port carries its part now."""

    qpn: int
    peer: int
    plane: int
    state: str
    carrier: int
