"""Broken files of every kind: place and reason, exit status 2, and little memory."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.interchange.chakra_graph import ChakraOptions, read_chakra
from mrc_testbed.testbed.interchange.distributions import read_sizes
from mrc_testbed.testbed.interchange.flow_lists import read_flows
from mrc_testbed.testbed.interchange.goal import read_goal
from mrc_testbed.testbed.interchange.htsim import read_htsim
from mrc_testbed.testbed.interchange.text import FormatError
from tests.unit.interchange.foreign import (
    FAILED_CM,
    GOAL,
    HPCC_FLOWS,
    INCAST_CM,
    METADATA,
    OWN_FLOWS,
    RING_CM,
    SIZES,
    chakra,
    node,
    trace,
    varint,
    written,
)

Reader = Callable[[Path], object]


def refused(read: Reader, file: Path, place: str, says: str) -> None:
    """The mistake has its place and reason, and takes little memory on the way."""
    tracemalloc.start()
    with pytest.raises(FormatError) as found:
        read(file)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.value.exit_code is ExitCode.USAGE
    assert found.value.place == place
    assert says in found.value.reason
    assert str(found.value).startswith(f"{file.parent}/")
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 500
    assert most < 64 << 20


TWO_SENDERS = "num_ranks 3\nrank 0 {\nrecv 8b from -1\nrecv 8b from -1\n}\n"
TWO_SENDERS += "rank 1 {\nsend 8b to 0\n}\nrank 2 {\nsend 8b to 0\n}\n"
TEXTS: list[tuple[Reader, str, str, str, str]] = [
    (read_htsim, "", "", "", "has no connections"),
    (read_htsim, INCAST_CM, "Nodes 8\n", "line 1", "must be `Nodes N`"),
    (read_htsim, INCAST_CM.replace("Connections 3", "Connections 4"), "", "", "says Connections 4, and the file has 3"),
    (read_htsim, INCAST_CM.replace("Nodes 8", "Nodes 3"), "", "line 6", "a node is '3'"),
    (read_htsim, INCAST_CM.replace("start 0", "start -5"), "", "line 4", "start is '-5'"),
    (read_htsim, INCAST_CM.replace("2000000", "2.5"), "", "line 5", "starts with decimals are us where htsim wrote"),
    (read_htsim, INCAST_CM.replace("start 0", "start 1e18000"), "", "line 4", "start is '1e18000'"),
    (read_htsim, INCAST_CM.replace("start 0", ""), "", "line 4", "needs `start` or `trigger`"),
    (read_htsim, INCAST_CM.replace("start 0", "start 0 trigger 3"), "", "line 4", "one of the two"),
    (read_htsim, INCAST_CM.replace("size 8192", ""), "", "line 6", "needs `size`"),
    (read_htsim, INCAST_CM.replace("id 1", "speed 1"), "", "line 4", "unknown key 'speed'"),
    (read_htsim, INCAST_CM.replace("size 8192", "size"), "", "line 6", "'size' has no value"),
    (read_htsim, INCAST_CM.replace("1->0", "0->0"), "", "line 4", "sends to itself"),
    (read_htsim, INCAST_CM.replace("1->0", "hello"), "", "line 4", "is none of Nodes"),
    (read_htsim, RING_CM, "", "line 9", "trigger 4 needs 1 events, and 0 flows fire it"),
    (read_htsim, RING_CM.replace("id 6 ", ""), "", "line 9", "needs an `id`"),
    (read_htsim, RING_CM.replace("trigger 4 size", "trigger 5 size"), "", "line 9", "trigger 5 is not defined"),
    (read_htsim, RING_CM.replace("trigger id 2", "trigger id 1"), "", "line 11", "a second trigger 1"),
    (read_htsim, INCAST_CM.replace("0 size", "0 \0size"), "", "line 4", "a byte of zero"),
    (read_htsim, FAILED_CM.replace("AGG switch_id 0", "TOP switch_id 0"), "", "line 6", "must be `failure switch_type"),
    (read_htsim, FAILED_CM.replace("0 link_id 1", "0"), "", "line 6", "must be `failure switch_type"),
    (read_htsim, FAILED_CM.replace("link_id 1", "link_id x"), "", "line 6", "link_id is 'x'"),
    (read_htsim, FAILED_CM.replace("3 link_id 0", "0 link_id 1"), "", "line 7", "has failed in line 6, too"),
    (read_htsim, FAILED_CM.replace("Failures 3", "Failures 4"), "", "", "says Failures 4, and the file has 3"),
    (read_flows, "", "", "", "is empty"),
    (read_flows, OWN_FLOWS.replace("0.5", "0.5s"), "", "line 2", "start_s is '0.5s'"),
    (read_flows, OWN_FLOWS.replace("bytes", "size"), "", "line 1", "'size' is no column"),
    (read_flows, OWN_FLOWS.replace(",64,", ",0,"), "", "line 3", "bytes is '0'"),
    (read_flows, OWN_FLOWS.replace("h1,h2", "gpu1,h2"), "", "line 2", "src is 'gpu1'"),
    (read_flows, HPCC_FLOWS.replace("3\n", "4\n", 1), "", "", "says 4 flows, and the file has 3"),
    (read_flows, HPCC_FLOWS.replace("3\n", "2\n", 1), "", "line 4", "here is one more"),
    (read_flows, HPCC_FLOWS.replace(" 100 ", " ", 1), "", "line 2", "has 5 words"),
    (read_flows, "x" * 70_000, "", "line 1", "has more than 64 KiB"),
    (read_sizes, SIZES.replace("10000 15", "10000 15 %"), "", "line 2", "must be `bytes percent`"),
    (read_sizes, SIZES.replace("20000 20", "2 20"), "", "line 3", "less than the point before it"),
    (read_sizes, SIZES.replace("0 0\n", ""), "", "", "must begin at 0"),
    (read_sizes, SIZES.replace(" 100", " 99"), "", "", "must end at 100"),
    (read_flows, OWN_FLOWS.replace("h1,h2", '"h1,h2'), "", "line 2", "has broken quotes"),
    (read_goal, GOAL.replace("l2 irequires l3", "l2 irequires l3\nl3 irequires l2"), "", "line 6", "to begin"),
    (read_goal, GOAL.replace("num_ranks 3\n", ""), "", "line 3", "must be `num_ranks N`"),
    (read_goal, GOAL.replace("num_ranks 3", "num_ranks 4"), "", "", "rank 3 is missing"),
    (read_goal, GOAL.replace("rank 2", "rank 1"), "", "line 19", "rank 1 is there twice; the first is in line 12"),
    (read_goal, GOAL.replace("rank 2 {\n}", "rank 2 {"), "", "", "rank 2 of line 19 has no `}`"),
    (read_goal, GOAL.replace("l4 requires l3", "l4 requires l9"), "", "line 9", "no label 'l9'"),
    (read_goal, GOAL.replace("to 1 tag 7", "tag 7 to 1"), "", "line 5", "is no statement of GOAL"),
    (read_goal, GOAL.replace("from 1 tag 9", "from -1 tag 8"), "", "line 7", "no send fits this recv from any rank"),
    (read_goal, GOAL.replace("from 1 tag 9", "from 2 tag -1"), "", "line 7", "no send fits this recv with any tag"),
    (
        read_goal,
        TWO_SENDERS,
        "",
        "line 3",
        "sends of rank 1 with tag 0 and of rank 2 with tag 0 fit this recv from any",
    ),
    (read_goal, GOAL.replace("from 1 tag 9", "from -2 tag 9"), "", "line 7", "a rank is '-2'"),
    (read_goal, GOAL.replace("to 1 tag 7", "to 1 tag -1"), "", "line 5", "tag is '-1'"),
    (read_goal, GOAL.replace("c: send 8b to 0 tag 9\n", "c: calc 1\n"), "", "line 7", "with tag 9 has no send"),
    (read_goal, GOAL.replace("recv 8b", "recv 9b"), "", "line 7", "the recv of 9 bytes meets a send of 8"),
    (read_goal, GOAL.replace("l4 requires l3", "l1 requires l3"), "", "line 5", "lines 5, 7, 13, 14, 15 wait for each"),
    (read_goal, GOAL.replace("l2 irequires l3", "l3 requires l4"), "", "line 7", "of rank 0 waits for itself"),
]


@pytest.mark.parametrize(("read", "text", "cut", "place", "says"), TEXTS)
def test_a_broken_text_file_has_its_place_and_reason(
    tmp_path: Path, read: Reader, text: str, cut: str, place: str, says: str
) -> None:
    refused(read, written(tmp_path, "broken", text.replace(cut, "") if cut else text), place, says)


def test_more_flows_than_a_run_may_have_are_refused_at_the_first_one_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrc_testbed.testbed.interchange.flow_lists.MOST_FLOWS", 1)
    refused(read_flows, written(tmp_path, "f.csv", OWN_FLOWS), "line 3", "more than 1 flows; cut the list")


def test_text_is_in_utf8(tmp_path: Path) -> None:
    refused(read_flows, written(tmp_path, "f", b"start_s,src,dst,bytes\n\xff\xfe"), "line 2", "no text in UTF-8")


def test_a_folder_and_nothing_are_no_files(tmp_path: Path) -> None:
    refused(read_htsim, tmp_path / "nowhere", "", "no such file")
    (tmp_path / "folder").mkdir()
    for read in (read_htsim, read_flows, read_sizes, read_goal, read_chakra):
        refused(read, tmp_path / "folder", "", "is no file")


@pytest.mark.parametrize("order", ["little", "big"])
def test_goal_in_binary_is_refused(tmp_path: Path, order: str) -> None:
    head = (4223).to_bytes(4, "little" if order == "little" else "big")
    refused(read_goal, written(tmp_path, "g.bin", head + b"\0" * 100), "", "GOAL in binary")


A_SEND = node(2, 5, comm_dst=1, comm_size=100)
A_RECV = node(2, 6, comm_src=0, comm_size=100)
COLLECTIVE = node(2, 7, comm_type=0, comm_size=100)
ETS: list[tuple[dict[int, bytes], str, str]] = [
    ({0: b""}, "", "has no nodes"),
    ({0: trace(node(1, 4))[:-1]}, "byte 8", "a message of 8 bytes, and only 7 are left"),
    ({0: trace(node(1, 4)) + varint(2 << 30)}, "byte 17", "a message of 2147483648 bytes"),
    ({0: trace(b"\x08" + b"\x80" * 10 + b"\x01")}, "byte 8", "a number of more than 10 bytes"),
    ({0: trace(b"\x0b")}, "byte 8", "wire type 3"),
    ({0: trace(metadata=node(1, 4))}, "byte 0", "is no metadata of Chakra"),
    ({0: trace(node(1, 4), node(1, 4))}, "node 1", "a second node"),
    ({0: trace(node(1, 11))}, "node 1", "the unknown type 11"),
    ({0: trace(node(1, 0))}, "node 1", "the unknown type 0"),
    ({0: trace(node(1, 4, [7]))}, "node 1", "needs node 7, which is not there"),
    ({0: trace(node(1, 4, [2]), node(2, 4, [1]))}, "node 1", "of rank 0 waits for itself"),
    ({0: trace(A_SEND), 1: trace(node(1, 4))}, "node 2", "has no recv"),
    ({0: trace(node(1, 4)), 1: trace(A_RECV)}, "node 2", "has no send"),
    ({0: trace(A_SEND), 2: trace(A_RECV)}, "", "t.1.et is missing beside it"),
    ({0: trace(A_SEND)}, "node 2", "comm_dst is '1'"),
    ({0: trace(node(2, 5, comm_dst=1)), 1: trace(A_RECV)}, "node 2", "lacks the attribute comm_size"),
    ({0: trace(node(2, 5, comm_dst=1, comm_size=-4)), 1: trace(A_RECV)}, "node 2", "comm_size is '-4'"),
    ({0: trace(COLLECTIVE), 1: trace(node(1, 4))}, "node 2", "a collective of 2 ranks; rank 1 has none"),
    ({0: trace(COLLECTIVE), 1: trace(node(5, 7, comm_type=0, comm_size=9))}, "node 5", "all-reduce of 9 bytes, where"),
    ({0: trace(COLLECTIVE), 1: trace(node(5, 7, comm_type=10, comm_size=9))}, "node 5", "comm_type is '10'"),
    ({0: trace(node(1, 4, us=1 << 60))}, "node 1", "computes for more than"),
    ({0: trace(node(1, 4, root=(29, "a"))[:-1] + b"\xff")}, "byte 8", "text that is not in UTF-8"),
]


@pytest.mark.parametrize(("ranks", "place", "says"), ETS)
def test_a_broken_trace_has_its_place_and_reason(
    tmp_path: Path, ranks: dict[int, bytes], place: str, says: str
) -> None:
    refused(read_chakra, chakra(tmp_path, ranks), place, says)


def test_gzip_that_is_cut_or_no_gzip_is_told(tmp_path: Path) -> None:
    packed = gzip.compress(trace(node(1, 4)))
    refused(read_chakra, written(tmp_path, "t.0.et", packed[:-9]), "", "its gzip is broken")
    refused(read_chakra, written(tmp_path, "t.0.et", b"\x1f\x8b" + b"x" * 50), "", "its gzip is broken")


def test_little_gzip_of_much_takes_little_memory(tmp_path: Path) -> None:
    content = varint(len(METADATA)) + METADATA + varint(1 << 30) + b"\0" * (1 << 20)
    refused(read_chakra, written(tmp_path, "t.0.et", gzip.compress(content)), "byte 8", "a message of 1073741824 bytes")


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("nonsense", "", "is no JSON"),
        ("[1]", "", "must be an object"),
        ('{"7": []}', "group '7'", "must be a list"),
        ('{"7": [0, 2]}', "group '7'", "'2' is no rank from 0 to 1"),
    ],
)
def test_broken_groups_are_told(tmp_path: Path, text: str, place: str, says: str) -> None:
    file = chakra(tmp_path, dict.fromkeys(range(2), trace(COLLECTIVE)))
    groups = written(tmp_path, "groups.json", text)
    refused(lambda one: read_chakra(file, ChakraOptions(groups=one)), groups, place, says)


def test_a_group_that_the_file_lacks_is_told(tmp_path: Path) -> None:
    file = chakra(tmp_path, dict.fromkeys(range(2), trace(node(2, 7, comm_type=0, comm_size=1, pg_name="3"))))
    groups = written(tmp_path, "groups.json", '{"7": [0, 1]}')
    refused(lambda one: read_chakra(one, ChakraOptions(groups=groups)), file, "node 2", "process group '3' is not in")
