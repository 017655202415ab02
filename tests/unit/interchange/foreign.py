"""Small files in the formats of others, made here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

RING_CM = """Nodes 128
Connections 6
Triggers 4
103->34 id 1 start 0 size 2000 send_done_trigger 1
103->59 id 2 trigger 1 size 2000 send_done_trigger 2
103->96 id 3 trigger 2 size 2000
34->59 id 4 start 7000000 size 1000 recv_done_trigger 3
59->96 id 5 trigger 3 size 500
59->34 id 6 trigger 4 size 500 prio 2
trigger id 1 oneshot
trigger id 2 oneshot
trigger id 3 oneshot
trigger id 4 barrier count 1
"""
"""Of the shape of foo2.cm of uet-htsim; trigger 4 is fired by nobody."""

CHAIN_CM = RING_CM.replace("trigger 4 ", "trigger 3 ").replace("trigger id 4 barrier count 1\n", "")
CHAIN_CM = CHAIN_CM.replace("Triggers 4", "Triggers 3")
"""The same without trigger 4."""

INCAST_CM = """Nodes 8
Connections 3
# an incast
1->0 id 1 start 0 size 4096
2->0 id 2 start 2000000 size 4096
3->0 start 2000000 id 3 size 8192"""
"""Of the shape of incast.cm, without the last line end."""

FAILED_CM = """Nodes 16
Connections 2
Failures 3
0->15 id 1 start 0 size 4096
4->9 id 2 start 0 size 4096
failure switch_type AGG switch_id 0 link_id 1
failure switch_type AGG switch_id 3 link_id 0
failure switch_type TOR switch_id 0 link_id 0
"""
"""In the grammar of failures of `connection_matrix.cpp`; 16 nodes are a fat tree of switches with 4 ports."""

HPCC_FLOWS = """3
0 1 3 100 1000 2.000000000
1 2 3 100 2000 2.000001500
2 0 3 100 3000 2.5
"""
OWN_FLOWS = "start_s,src,dst,bytes,name\n0.5,h1,h2,4096,a\n0.000001500,h0,h2,64,\n"
SIZES = "0 0\n10000 15\n20000 20\n30000000 100\n"
"""Of the shape of WebSearch_distribution.txt."""

GOAL = """num_ranks 3
// a send, a computation beside it, and an answer

rank 0 {
l1: send 4096b to 1 tag 7 cpu 0 nic 0
l2: calc 1000 cpu 1
l3: recv 8b from 1 tag 9
l4: calc 50
l4 requires l3
l2 irequires l3
}
rank 1 {
a: recv 4096b from 0 tag 7
b: calc 2000 /* ns */
c: send 8b to 0 tag 9
b requires a
c requires b
}
rank 2 {
}
"""


def varint(value: int) -> bytes:
    found = b""
    value &= (1 << 64) - 1
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def number(key: int, value: int) -> bytes:
    return varint(key << 3) + varint(value)


def block(key: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(key << 3 | 2) + varint(len(content)) + content


def attribute(name: str, value: Any) -> bytes:
    """Whole numbers as int64, as most writers do; a pair is a field's number and its value."""
    key, value = value if isinstance(value, tuple) else (9, value)
    if isinstance(value, bool):
        return block(10, block(1, name) + number(27, value))
    return block(10, block(1, name) + (block(29, value) if isinstance(value, str) else number(key, value)))


def node(
    identity: int, kind: int, needs: Iterable[int] = (), us: int = 0, packed: bool = True, **attributes: Any
) -> bytes:
    content = number(1, identity) + block(2, f"n{identity}") + number(3, kind)
    needs = list(needs)
    if packed and needs:
        content += block(5, b"".join(map(varint, needs)))
    else:
        content += b"".join(number(4, one) for one in needs)
    content += number(7, us) if us else b""
    return content + b"".join(attribute(name, value) for name, value in attributes.items())


METADATA = block(1, "0.0.4")


def trace(*nodes: bytes, metadata: bytes = METADATA) -> bytes:
    return b"".join(varint(len(one)) + one for one in (metadata, *nodes))


def chakra(folder: Path, ranks: Mapping[int, bytes], name: str = "t") -> Path:
    """The files of a trace; the one of its first rank."""
    for rank, content in ranks.items():
        (folder / f"{name}.{rank}.et").write_bytes(content)
    return folder / f"{name}.{min(ranks)}.et"


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
