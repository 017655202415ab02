"""The hash by which switches choose among next hops, as Linux computes it from 6.11 on (net/ipv6/route.c and
net/core/flow_dissector.c): the same flows share a next hop in both worlds, and hosts can choose their ports alike.

With hash policy 1 it is SipHash-2-4 of a `struct flow_keys` with only addresses, protocol and ports filled in,
the smaller of two addresses and of two ports first; with policy 3 the flow label is filled in as well, and a second
hash, of headers inside a tunnel, is mixed in, which is 0 here.
"""

from __future__ import annotations

from ipaddress import IPv6Address
from struct import Struct

_WORD = 0xFFFFFFFF
_LONG = (1 << 64) - 1
_FLOW_KEYS = Struct("<2xBxI8x8x4x4s4x16s16s4x")
"""Protocol, flow label, ports, addresses; VLANs, a tunnel's key and ICMP are 0 between them."""
_HASH_BITS = 31
_GOLDEN = 0x9E3779B9


def siphash(data: bytes, key: int) -> int:
    """SipHash-2-4 (Aumasson and Bernstein, 2012) of whole words of 64 bits; both halves of the key are `key`."""
    v0, v1, v2, v3 = (
        key ^ word for word in (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    )
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    for word in [*words, len(data) << 56 & _LONG]:
        v3 ^= word
        for _ in range(2):
            v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
    v2 ^= 0xFF
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


def _round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    v0 = (v0 + v1) & _LONG
    v1 = _turned(v1, 13) ^ v0
    v0 = _turned(v0, 32)
    v2 = (v2 + v3) & _LONG
    v3 = _turned(v3, 16) ^ v2
    v0 = (v0 + v3) & _LONG
    v3 = _turned(v3, 21) ^ v0
    v2 = (v2 + v1) & _LONG
    v1 = _turned(v1, 17) ^ v2
    v2 = _turned(v2, 32)
    return v0, v1, v2, v3


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _LONG


def flow_hash(
    source: str, destination: str, protocol: int, ports: tuple[int, int], seed: int, flow_label: int | None = None
) -> int:
    """The 31 bits by which a switch with this `fib_multipath_hash_seed` chooses. `flow_label`: None where it does not
    count."""
    addresses = sorted(IPv6Address(address).packed for address in (source, destination))
    # Ports are compared as the machine reads them, low byte first on all that we know.
    swapped = sorted((port.to_bytes(2, "big") for port in ports), key=lambda port: port[::-1])
    keys = _FLOW_KEYS.pack(protocol, flow_label or 0, b"".join(swapped), *addresses)
    found = siphash(keys, seed << 32 | seed) & _WORD or 1
    if flow_label is not None:
        found = _jhash_of_two(found, 0)
    return found >> 1


def hash_of_ports(protocol: int, ports: tuple[int, int], seed: int, flow_label: int = 0) -> int:
    """The same where neither address counts (policy 3 with `fib_multipath_hash_fields` that leave them out)."""
    return flow_hash("::", "::", protocol, ports, seed, flow_label)


def _jhash_of_two(a: int, b: int) -> int:
    """Jenkins' lookup3 of two words (linux/jhash.h, jhash_2words with an initial value of 0)."""
    first = 0xDEADBEEF + (2 << 2) & _WORD
    a, b, c = a + first & _WORD, b + first & _WORD, first
    c ^= b
    c = c - _rolled(b, 14) & _WORD
    a ^= c
    a = a - _rolled(c, 11) & _WORD
    b ^= a
    b = b - _rolled(a, 25) & _WORD
    c ^= b
    c = c - _rolled(b, 16) & _WORD
    a ^= c
    a = a - _rolled(c, 4) & _WORD
    b ^= a
    b = b - _rolled(a, 14) & _WORD
    c ^= b
    return c - _rolled(b, 24) & _WORD


def _rolled(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _WORD


def next_hop(hash_: int, hops: int) -> int:
    """The index of the next hop that a hash selects among `hops` equal ones: each has an equal share of all hashes."""
    return next(hop for hop in range(hops) if hash_ <= _upper_bound(hop + 1, hops))


def _upper_bound(parts: int, of: int) -> int:
    """The largest hash of the first `parts` shares, rounded as DIV_ROUND_CLOSEST_ULL does."""
    return ((parts << _HASH_BITS) + of // 2) // of - 1
