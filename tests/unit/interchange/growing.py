"""Little files that could become much, one below a MiB for each way that a format has."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping

from tests.unit.interchange.foreign import METADATA, attribute, block, number, varint

Files = Mapping[str, bytes]


def text(name: str, lines: Iterator[str]) -> Files:
    return {name: "".join(f"{line}\n" for line in lines).encode()}


def _barrier(follower: str) -> Iterator[str]:
    count = 6000
    yield from ("Nodes 4", f"Connections {2 * count}", "Triggers 1", f"trigger id 1 barrier count {count}")
    yield from (f"0->1 id {one + 1} start 0 size 1 send_done_trigger 1" for one in range(count))
    yield from (f"{follower} id {count + one + 1} trigger 1 size 1" for one in range(count))


def barrier_of_one_node() -> Files:
    return text("x.cm", _barrier("0->1"))


def barrier_of_another_node() -> Files:
    return text("x.cm", _barrier("2->1"))


def chain_of_begins() -> Files:
    def lines(count: int = 20_000) -> Iterator[str]:
        yield from ("num_ranks 1", "rank 0 {", *(f"a{one}: calc 1" for one in range(count)))
        yield from (f"a{one} irequires a{one - 1}" for one in range(1, count))
        yield from (f"a{one} requires a{one - 1}" for one in range(1, count, 2))
        yield "}"

    return text("x.goal", lines())


def short_statements() -> Files:
    return text("x.goal", iter(("num_ranks 1", "rank 0 {", *("calc 1" for _ in range(140_000)), "}")))


def recvs_from_any_rank() -> Files:
    sends, recvs = ("send 1b to 1" for _ in range(30_000)), ("recv 1b from -1" for _ in range(30_000))
    return text("x.goal", iter(("num_ranks 2", "rank 0 {", *sends, "}", "rank 1 {", *recvs, "}")))


def many_flows() -> Files:
    rows = (f"0,{one % 127},{one % 127 + 1},1,n{one}" for one in range(45_000))
    return text("x.csv", iter(("start_s,src,dst,bytes,name", *rows)))


def many_sizes() -> Files:
    return text("x.cdf", iter(("0 0", *(f"{one} {one / 1000}" for one in range(1, 9900)), "100000 100")))


def _messages(contents: Iterator[bytes]) -> bytes:
    return b"".join(varint(len(one)) + one for one in (METADATA, *contents))


def _packed(contents: Iterator[bytes]) -> Files:
    return {"t.0.et.gz": gzip.compress(_messages(contents), mtime=0)}


def _node(identity: int, kind: int = 4) -> bytes:
    return number(1, identity) + number(3, kind)


def packed_nodes() -> Files:
    return _packed(_node(one) for one in range(1, 400_000))


def packed_needs() -> Files:
    return _packed(_node(one) + block(5, b"\1" * (15 << 20)) for one in range(1, 6))


def packed_names() -> Files:
    return _packed(_node(one) + block(2, b"x" * (15 << 20)) for one in range(1, 16))


def packed_texts() -> Files:
    return _packed(_node(one) + block(10, block(1, "pg_name") + block(29, b"x" * 4000)) for one in range(1, 50_000))


def packed_attributes() -> Files:
    return _packed(iter((_node(1) + b"".join(block(10, number(9, one)) for one in range(330_000)),)))


def nodes_that_need_all_before() -> Files:
    def before(last: int) -> bytes:
        return block(5, b"".join(map(varint, range(1, last))))

    return {"t.0.et": _messages(_node(one) + before(one) for one in range(1, 1000))}


def collectives_of_many_ranks() -> Files:
    one = _messages(_node(each, 7) + attribute("comm_type", 0) + attribute("comm_size", 1000) for each in range(1, 61))
    return {f"t.{rank}.et": one for rank in range(64)}


def groups_without_number() -> Files:
    def of(rank: int) -> Iterator[bytes]:
        groups = (attribute("pg_name", f"{rank}.{each}") for each in range(12))
        return (_node(each, 7) + attribute("comm_type", 9) + group for each, group in enumerate(groups, 1))

    return {f"t.{rank}.et": _messages(of(rank)) for rank in range(1000)}


GROWING: tuple[Callable[[], Files], ...] = (
    *(barrier_of_one_node, barrier_of_another_node, chain_of_begins, short_statements, recvs_from_any_rank),
    *(many_flows, many_sizes, packed_needs, packed_names, packed_texts, packed_attributes),
    *(nodes_that_need_all_before, collectives_of_many_ranks, groups_without_number, packed_nodes),
)
