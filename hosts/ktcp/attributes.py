"""One side of a QP over kernel TCP, as its peer must know it."""

from __future__ import annotations

from dataclasses import dataclass

from mrc_testbed.hosts.common.attributes import check_integers
from mrc_testbed.hosts.control import Fields

_RANGES = {"qpn": (0, (1 << 32) - 1), "key": (0, (1 << 64) - 1), "region_bytes": (0, (1 << 64) - 1)}


@dataclass(frozen=True, slots=True)
class TcpQpAttributes:
    """Carried out of band. Addresses in a region count from 0."""

    qpn: int
    key: int
    """Proves to this side that a connection comes from who was told of the QP, and not from before a reset."""
    region_bytes: int
    region_address: int = 0

    def as_json(self) -> Fields:
        """The set-up object."""
        return {"qpn": self.qpn, "key": self.key, "region_bytes": self.region_bytes}

    @classmethod
    def from_json(cls, fields: Fields) -> TcpQpAttributes:
        """Inverse of `as_json`. Raises KeyError or TypeError for what is no such object, PeerAttributeError for a value
        that cannot be."""
        values = {key: fields[key] for key in _RANGES}
        check_integers(values, _RANGES)
        return cls(**values)
