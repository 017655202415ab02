"""24-bit PSNs on the wire, endless sequence numbers inside (RoCEv2: 24 bits, compared modulo 2^24).

Inside the core a packet has a sequence number that starts at 0 and never wraps, so that it can be compared and
subtracted as it is. PSN = (initial PSN + sequence number) mod 2^24.
"""

from __future__ import annotations

MODULUS = 1 << 24
MASK = MODULUS - 1
HALF = MODULUS >> 1
STRANGE = HALF >> 2
"""What is further away than this from what is awaited is of another connection: a QP that was reset begins at least
twice as far from where it was (`Endpoint.reset_qp`), and no window comes near."""


def unwrap(psn: int, initial_psn: int, near: int) -> int:
    """The sequence number closest to `near` (at most 2^23 away) whose PSN is `psn`."""
    return near + ((psn - initial_psn - near + HALF) & MASK) - HALF


def signed16(value: int) -> int:
    """A 16-bit field read as two's complement."""
    return value - 0x10000 if value & 0x8000 else value
