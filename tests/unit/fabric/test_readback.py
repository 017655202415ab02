"""The second reader on what iproute2 6.1 printed for a fabric of two hosts on one switch (Linux 6.18)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from mrc_testbed.testbed.errors import FabricError
from mrc_testbed.testbed.fabric import counters, readback, readback_text
from mrc_testbed.testbed.fabric.readback_queues import rows_held, rows_wanted
from mrc_testbed.testbed.switching.expected import Expected
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.plan import build_plan

PLAN = build_plan(clos2_shape(planes=1, t0_groups=1, t1=0, hosts_per_t0=2, port_rate_bps=25_000_000, rtt_ns=20_000_000))
EXPECTED = Expected(PLAN, FabricOptions("ifb", "none"))
PIDS = {"h0": 10, "h1": 11, "p0-t0-0": 12}
Tables = dict[str, list[dict[str, Any]]]
MADE = {"metric": 1024, "flags": [], "pref": "medium"}
BY_KERNEL = {"protocol": "kernel", "metric": 256, "flags": [], "pref": "medium"}
ENCAP = {"encap": "seg6", "mode": "encap.red", "segs": ["fcbb:bb00:1000:d001::"], "dev": "sid0", **MADE}
ROUTES: Tables = {
    "h0": [
        {"dst": "fcbb:bb00:1000::/48", "gateway": "fe80::3e9", "dev": "port0", **MADE},
        {
            "dst": "fcbb:bb00:d000::/48",
            "encap": "seg6local",
            "action": "End.DT6",
            "table": "local",
            "dev": "sid0",
            **MADE,
        },
        {"dst": "fd00::1:0:0:1", "dev": "lo", **BY_KERNEL},
        {"dst": "fd00:0:0:1::", **ENCAP},
        {"dst": "fd00::1:1:0:0:1", **ENCAP},
        {"type": "local", "dst": "::1", "dev": "lo", "table": "local", **BY_KERNEL},
        {"type": "local", "dst": "fd00::1:0:0:1", "dev": "lo", "table": "local", **BY_KERNEL},
        {"type": "local", "dst": "fd00::/64", "dev": "lo", "table": "local", **MADE},
        {"type": "multicast", "dst": "ff00::/8", "dev": "port0", "table": "local", **BY_KERNEL},
    ],
    "p0-t0-0": [
        {
            "dst": "fcbb:bb00:1000::/48",
            "encap": "seg6local",
            "action": "End",
            "flavors": ["next-csid"],
            "lblen": 32,
            "nflen": 16,
            "dev": "sid0",
            **MADE,
        },
        {"dst": "fcbb:bb00:d000::/48", "gateway": "fe80::3e8", "dev": "down0", **MADE},
        {"dst": "fcbb:bb00:d001::/48", "gateway": "fe80::3ea", "dev": "down1", **MADE},
        {"type": "multicast", "dst": "ff00::/8", "dev": "down1", "table": "local", **BY_KERNEL},
    ],
}
UP = ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"]


ROUTES_AS_TEXT = {
    "h0": """\
fcbb:bb00:1000::/48 via fe80::3e9 dev port0 metric 1024 pref medium
fcbb:bb00:d000::/48  encap seg6local action End.DT6 table local dev sid0 metric 1024 pref medium
fd00::1:0:0:1 dev lo proto kernel metric 256 pref medium
fd00:0:0:1::  encap seg6 mode encap.red segs 1 [ fcbb:bb00:1000:d001:: ] dev sid0 metric 1024 pref medium
fd00::1:1:0:0:1  encap seg6 mode encap.red segs 1 [ fcbb:bb00:1000:d001:: ] dev sid0 metric 1024 pref medium
local ::1 dev lo table local proto kernel metric 0 pref medium
local fd00::1:0:0:1 dev lo table local proto kernel metric 0 pref medium
local fd00::/64 dev lo table local metric 1024 pref medium
multicast ff00::/8 dev port0 table local proto kernel metric 256 pref medium
""",
    "p0-t0-0": """\
fcbb:bb00:1000::/48  encap seg6local action End flavors next-csid lblen 32 nflen 16 dev sid0 metric 1024 pref medium
fcbb:bb00:d000::/48 via fe80::3e8 dev down0 metric 1024 pref medium
fcbb:bb00:d001::/48 via fe80::3ea dev down1 metric 1024 pref medium
multicast ff00::/8 dev down1 table local proto kernel metric 256 pref medium
""",
}


def port(name: str, ifindex: int, mac: str) -> dict[str, Any]:
    return {"ifindex": ifindex, "ifname": name, "flags": list(UP), "mtu": 9000, "link_type": "ether", "address": mac}


LO = {
    "ifindex": 1,
    "ifname": "lo",
    "flags": ["LOOPBACK", "UP", "LOWER_UP"],
    "mtu": 65536,
    "link_type": "loopback",
    "address": "00:00:00:00:00:00",
}
LINKS: Tables = {
    "h0": [LO, {**port("sid0", 2, "52:bd:24:fb:65:8f"), "mtu": 1500}, port("port0", 1000, "02:00:00:00:03:e8")],
    "p0-t0-0": [LO, port("down0", 1001, "02:00:00:00:03:e9"), port("down1", 1003, "02:00:00:00:03:eb")],
}
STATE = {"state": ["PERMANENT"]}
NEIGHBOURS: Tables = {
    "h0": [{"dst": "fe80::3e9", "dev": "port0", "lladdr": "02:00:00:00:03:e9", **STATE}],
    "p0-t0-0": [
        {"dst": "fe80::3e8", "dev": "down0", "lladdr": "02:00:00:00:03:e8", **STATE},
        {"dst": "fe80::3ea", "dev": "down1", "lladdr": "02:00:00:00:03:ea", **STATE},
    ],
}
CLASSES = """\
qdisc htb 1: root refcnt 3 r2q 10 default 0x20 direct_packets_stat 0 direct_qlen 1000
qdisc bfifo 10: parent 1:10 limit 135616b
qdisc bfifo 20: parent 1:20 limit 187500b
class htb 1:10 parent 1:1 leaf 10: prio 0 rate 23750Kbit ceil 25Mbit burst 8472b cburst 8475b\x20
class htb 1:1 root rate 25Mbit ceil 25Mbit burst 8475b cburst 8475b\x20
class htb 1:20 parent 1:1 leaf 20: prio 1 rate 1250Kbit ceil 25Mbit burst 8475b cburst 8475b\x20
"""
NO_SHAPER = "qdisc noqueue 0: root refcnt 2\x20\n"


class Kernel:
    """Answers the questions of the reader for h0 and the switch; a test changes one table before it reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tables: dict[str, Tables] = json.loads(
            json.dumps({"route": ROUTES, "link": LINKS, "neigh": NEIGHBOURS}),
        )
        self.classes = {"h0": [CLASSES], "p0-t0-0": [CLASSES, CLASSES]}
        self.asked: list[str] = []
        self.text = dict(ROUTES_AS_TEXT)
        monkeypatch.setattr(readback, "query", self.query)
        monkeypatch.setattr(readback_text, "query", self.query)

    def query(
        self, command: list[str], pids: Mapping[str, int], stdin: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        self.asked.append(" ".join(command))
        if command[0] == "tc":
            assert stdin is not None
            lines = [f"{what} show dev {name}" for name in ("down0", "down1") for what in ("qdisc", "class")]
            if "p0-t0-0" in pids:
                assert stdin["p0-t0-0"] == "\n".join(lines)
            return {node: "".join(self.classes[node]) for node in pids}
        if command == readback.IP_JSON:
            assert stdin is not None
            assert all(lines.splitlines()[-1] == "link show" for lines in stdin.values()), "it forgets -6 after that"
            return {node: "".join(self._list(line, node) for line in stdin[node].splitlines()) for node in pids}
        table = next(word for word in command if word in self.tables)
        if "-j" not in command:
            same = {node for node in pids if self.tables[table][node] == ROUTES[node]}
            return {node: self.text[node] if node in same else "something else\n" for node in pids}
        return {node: json.dumps(self.tables[table][node]) for node in pids}

    def _list(self, line: str, node: str) -> str:
        """Of a line of a batch."""
        entries = self.tables[line.split()[0]][node]
        return json.dumps(entries) + "\n" if entries else ""

    def drift(self, node: str = "p0-t0-0") -> str:
        """What the reader has to say about one node."""
        with pytest.raises(FabricError) as told:
            readback.verify(EXPECTED, PIDS, [node])
        assert told.value.node == node
        return told.value.detail


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


def test_a_fabric_as_planned_has_no_drift(kernel: Kernel) -> None:
    readback.verify(EXPECTED, PIDS, ["h0", "p0-t0-0"])
    assert kernel.asked == [
        "ip -6 route show table all",
        "ip -6 -j -batch -",
        "tc -d -batch -",
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(" metric 1024", ""),
        lambda text: text + "fcbb:bb00:ffff::/48 via fe80::1 dev port0 metric 1024 pref medium\n",
        lambda text: "".join(text.splitlines(keepends=True)[1:]),
        lambda text: text.replace("encap.red", "encap"),
    ],
)
def test_a_node_whose_text_differs_is_read_again_and_that_decides(kernel: Kernel, change: Callable[[str], str]) -> None:
    kernel.text["h0"] = change(kernel.text["h0"])
    readback.verify(EXPECTED, PIDS, ["h0", "p0-t0-0"])
    assert kernel.asked[:2] == ["ip -6 route show table all", "ip -6 -j route show table all"]


def test_only_the_nodes_asked_for_are_read(kernel: Kernel) -> None:
    kernel.tables["route"]["h0"].clear()
    readback.verify(EXPECTED, PIDS, ["p0-t0-0"])


def test_a_next_hop_may_look_dead_until_the_kernel_has_heard_of_its_carrier(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.tables["route"]["h0"].clear()
    monkeypatch.setattr(readback, "_may_settle", lambda _expected, node: node == "h0")
    monkeypatch.setattr(time, "sleep", lambda _: kernel.tables["route"].update(h0=ROUTES["h0"]))
    readback.verify(EXPECTED, PIDS, ["h0"])
    monkeypatch.setattr(readback, "_LINKS_SETTLE_S", 0.1)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    kernel.tables["route"]["h0"] = []
    assert "lacks route" in kernel.drift("h0")


def _drop(rows: list[dict[str, Any]], **fields: Any) -> None:
    rows[:] = [row for row in rows if any(row.get(key) != value for key, value in fields.items())]


def _change(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda row: row.update(fields)


def test_a_lost_route_is_named(kernel: Kernel) -> None:
    _drop(kernel.tables["route"]["p0-t0-0"], dev="down1", metric=1024)
    assert kernel.drift() == "p0-t0-0 lacks route via fcbb:bb00:d001::/48 down1 fe80::3ea"


@pytest.mark.parametrize(
    ("node", "dst", "change", "says"),
    [
        (
            "p0-t0-0",
            "fcbb:bb00:d001::/48",
            _change(gateway="fe80::3e8"),
            "route via fcbb:bb00:d001::/48 down1 fe80::3e8",
        ),
        ("p0-t0-0", "fcbb:bb00:d001::/48", _change(dev="down0"), "route via fcbb:bb00:d001::/48 down0 fe80::3ea"),
        ("p0-t0-0", "fcbb:bb00:1000::/48", _change(flavors=[]), "route End fcbb:bb00:1000::/48 sid0  32 16"),
        ("p0-t0-0", "fcbb:bb00:1000::/48", _change(lblen=16), "route End fcbb:bb00:1000::/48 sid0 next-csid 16 16"),
        ("h0", "fd00:0:0:1::", _change(mode="encap"), "route seg6 fd00:0:0:1::/128 sid0 encap"),
        ("h0", "fd00:0:0:1::", _change(segs=["fcbb:bb00::"]), "route encap fd00:0:0:1::/128 sid0 fcbb:bb00::"),
        ("h0", "fcbb:bb00:d000::/48", _change(table="main"), "route End.DT6 fcbb:bb00:d000::/48 sid0 table main"),
        ("h0", "fd00::/64", _change(type="blackhole"), "route blackhole fd00::/64 lo "),
    ],
    ids=["gateway", "device", "flavour", "block length", "not reduced", "segments", "table", "type"],
)
def test_a_changed_route_is_lacking_and_unplanned(
    kernel: Kernel, node: str, dst: str, change: Callable[[dict[str, Any]], None], says: str
) -> None:
    change(next(row for row in kernel.tables["route"][node] if row["dst"] == dst and "protocol" not in row))
    lacks, unplanned = kernel.drift(node).split("; ")
    assert lacks.startswith(f"{node} lacks route ")
    assert unplanned == f"{node} has unplanned {says}"


@pytest.mark.parametrize("dst", ["fd99::/64", "default"])
def test_a_route_nobody_planned_is_named(kernel: Kernel, dst: str) -> None:
    kernel.tables["route"]["p0-t0-0"].append({"dst": dst, "gateway": "fe80::3e8", "dev": "down0", **MADE})
    shown = "::/0" if dst == "default" else dst
    assert kernel.drift() == f"p0-t0-0 has unplanned route via {shown} down0 fe80::3e8"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"flags": ["BROADCAST", "MULTICAST"]}, "mtu 9000 down no carrier"),
        ({"flags": ["NO-CARRIER", "BROADCAST", "MULTICAST", "UP"]}, "mtu 9000 up no carrier"),
        ({"mtu": 1500}, "mtu 1500 up carrier"),
    ],
    ids=["down", "no carrier", "mtu"],
)
def test_a_port_in_another_state_is_named(kernel: Kernel, change: dict[str, Any], says: str) -> None:
    kernel.tables["link"]["p0-t0-0"][1].update(change)
    assert kernel.drift() == (
        "p0-t0-0 lacks port down0 1001 02:00:00:00:03:e9 mtu 9000 up carrier; "
        f"p0-t0-0 has unplanned port down0 1001 02:00:00:00:03:e9 {says}"
    )


@pytest.mark.parametrize("change", [{"ifindex": 77}, {"address": "02:00:00:00:00:4d"}], ids=["number", "mac"])
def test_a_port_with_another_identity_is_named(kernel: Kernel, change: dict[str, Any]) -> None:
    kernel.tables["link"]["p0-t0-0"][1].update(change)
    assert f"has unplanned port down0 {change.get('ifindex', 1001)} " in kernel.drift()


def test_a_port_nobody_planned_is_named(kernel: Kernel) -> None:
    kernel.tables["link"]["p0-t0-0"].append(port("eth9", 9, "02:00:00:00:00:09"))
    assert kernel.drift() == "p0-t0-0 has unplanned port eth9 9 02:00:00:00:00:09 mtu 9000 up carrier"


def test_a_lost_neighbour_is_named(kernel: Kernel) -> None:
    del kernel.tables["neigh"]["p0-t0-0"][0]
    assert kernel.drift() == "p0-t0-0 lacks neighbour fe80::3e8 02:00:00:00:03:e8 down0"


def test_a_neighbour_with_another_address_is_named(kernel: Kernel) -> None:
    kernel.tables["neigh"]["p0-t0-0"][1]["lladdr"] = "02:00:00:00:00:01"
    assert "p0-t0-0 has unplanned neighbour fe80::3ea 02:00:00:00:00:01 down1" in kernel.drift()


def test_a_wrong_rate_is_named_with_its_port(kernel: Kernel) -> None:
    assert kernel.classes["p0-t0-0"][1].count("rate 1250Kbit ceil 25Mbit") == 1
    kernel.classes["p0-t0-0"][1] = CLASSES.replace("rate 1250Kbit ceil 25Mbit", "rate 1250Kbit ceil 24Mbit")
    assert kernel.drift() == (
        "p0-t0-0 lacks shaper down1 1:20 25000000; p0-t0-0 has unplanned shaper down1 1:20 24000000"
    )


def test_a_lost_shaper_does_not_hide_the_next_ports(kernel: Kernel) -> None:
    kernel.classes["p0-t0-0"][0] = NO_SHAPER
    queues = ["queue down0 1:10 135616", "queue down0 1:20 187500"]
    shapers = [f"shaper down0 1:{minor} 25000000" for minor in ("1", "10", "20")]
    assert kernel.drift() == "; ".join(f"p0-t0-0 lacks {what}" for what in queues + shapers)


@pytest.mark.parametrize("shown", ["25000000bit", "25000Kbit", "25001Kbit"])
def test_a_rate_may_be_printed_rounded(kernel: Kernel, shown: str) -> None:
    kernel.classes["p0-t0-0"][0] = CLASSES.replace("ceil 25Mbit", f"ceil {shown}")
    readback.verify(EXPECTED, PIDS, ["p0-t0-0"])


def test_a_shallow_queue_is_named(kernel: Kernel) -> None:
    kernel.classes["p0-t0-0"][1] = CLASSES.replace("limit 187500b", "limit 180Kb")
    assert kernel.drift() == ("p0-t0-0 lacks queue down1 1:20 187500; p0-t0-0 has unplanned queue down1 1:20 184320")


PROGRAMMED = Expected(
    PLAN,
    FabricOptions("ifb", "none", "port program"),
    {"h0:p0-t0-0": 2_500_000},
    {"port_ingress": 113, "port_egress": 7},
)
PORT_TEXT = """\
qdisc htb 1: root refcnt 3 r2q 10 default 0x20 direct_packets_stat 0 ver 3.17 direct_qlen 1000
 overhead 1\x20
qdisc bfifo 10: parent 1:10 limit 135616b\x20
qdisc bfifo 20: parent 1:20 limit 323116b\x20
qdisc clsact ffff: parent ffff:fff1\x20
class htb 1:10 parent 1:1 leaf 10: prio 0 rate 23750Kbit ceil RATE linklayer ethernet burst 8472b cburst 8475b\x20
class htb 1:1 root rate RATE ceil RATE linklayer ethernet burst 8475b/1 mpu 0b cburst 8475b/1 mpu 0b level 7\x20
class htb 1:20 parent 1:1 leaf 20: prio 1 rate 1250Kbit ceil RATE linklayer ethernet burst 8475b cburst 8475b\x20
filter protocol all pref 1 bpf chain 0\x20
filter protocol all pref 1 bpf chain 0 handle 0x1 port_ingress:[*fsobj] direct-action not_in_hw \
id 113 name port_ingress tag adb8093c1bf8f127 jited\x20
filter protocol all pref 1 bpf chain 0\x20
filter protocol all pref 1 bpf chain 0 handle 0x1 port_egress:[*fsobj] direct-action not_in_hw \
id 7 name port_egress tag 2e8a45632bba7444 jited\x20
"""
PORTS_TEXT = PORT_TEXT.replace("RATE", "2500Kbit") + PORT_TEXT.replace("RATE", "25Mbit")


def test_a_programmed_switch_as_it_should_be_has_no_drift() -> None:
    """The first port at the rate a fault gave it."""
    assert set(rows_held(PROGRAMMED, "p0-t0-0", PORTS_TEXT)) == set(rows_wanted(PROGRAMMED, "p0-t0-0"))


@pytest.mark.parametrize(
    ("old", "new", "lacking"),
    [
        ("ceil 2500Kbit", "ceil 25Mbit", ("shaper", "down0", "1:1", "2500000")),
        (" overhead 1 \n", "", ("size table", "down0", "1")),
        ("id 7 name port_egress", "id 8 name port_egress", ("program", "down0", "port_egress", "id 7")),
        ("name port_ingress", "name other", ("program", "down0", "port_ingress", "id 113")),
        ("limit 323116b", "limit 187500b", ("queue", "down0", "1:20", "323116")),
    ],
    ids=["rate of the plan", "no size table", "another load", "another program", "shallow queue"],
)
def test_what_a_programmed_port_lacks(old: str, new: str, lacking: tuple[str, ...]) -> None:
    held = set(rows_held(PROGRAMMED, "p0-t0-0", PORTS_TEXT.replace(old, new)))
    assert lacking in set(rows_wanted(PROGRAMMED, "p0-t0-0")) - held


def test_what_faults_hold_down_is_no_drift_and_all_else_is(kernel: Kernel) -> None:
    own, other = (port for port, _ in PLAN.ports["p0-t0-0"])
    held = replace(EXPECTED, down={other}, off={"p0-t0-0"})
    with pytest.raises(FabricError, match=r"p0-t0-0 lacks port down1 .* down no carrier"):
        readback.verify(held, PIDS, ["p0-t0-0"])
    _drop(kernel.tables["route"]["p0-t0-0"], dst="fcbb:bb00:d001::/48")
    _drop(kernel.tables["route"]["p0-t0-0"], dst="fcbb:bb00:1000::/48")
    _drop(kernel.tables["neigh"]["p0-t0-0"], dev="down1")
    down = next(link for link in kernel.tables["link"]["p0-t0-0"] if link["ifname"] == "down1")
    down["flags"] = ["BROADCAST", "MULTICAST"]
    readback.verify(held, PIDS, ["p0-t0-0"])
    with pytest.raises(FabricError, match=r"h0 lacks port port0 .* no carrier"):
        readback.verify(replace(held, down={own, other}), PIDS, ["h0"])


def test_many_drifts_are_counted(kernel: Kernel) -> None:
    kernel.classes["p0-t0-0"] = [NO_SHAPER, NO_SHAPER]
    _drop(kernel.tables["route"]["p0-t0-0"], dev="down1", metric=1024)
    told = kernel.drift()
    assert told.count("lacks") == 5
    assert told.endswith("(and 6 more)")


def test_the_table_of_a_switch_is_counted_without_what_the_kernel_adds(kernel: Kernel) -> None:
    assert readback.fib_size(PLAN, PIDS, "p0-t0-0") == 3
    _drop(kernel.tables["route"]["p0-t0-0"], metric=1024)
    assert kernel.tables["route"]["p0-t0-0"]
    assert readback.fib_size(PLAN, PIDS, "p0-t0-0") == 0


QDISCS = [
    {"kind": "noqueue", "handle": "0:", "dev": "lo", "root": True, "bytes": 0, "packets": 0, "drops": 0},
    {"kind": "htb", "handle": "1:", "dev": "port0", "root": True, "bytes": 90, "packets": 12, "drops": 3},
    {"kind": "bfifo", "handle": "20:", "dev": "port0", "parent": "1:20", "bytes": 90, "packets": 11, "drops": 2},
    {"kind": "bfifo", "handle": "10:", "dev": "port0", "parent": "1:10", "bytes": 9, "packets": 1, "drops": 1},
]


def test_queue_counters_are_those_of_the_shapers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "query", lambda command, pids: dict.fromkeys(pids, json.dumps(QDISCS)))
    assert counters.queue_counters({"h0": 1}) == {"h0": {"port0": {"sent_packets": 12, "drops": 3, "control_drops": 1}}}


def test_port_counters_come_from_the_right_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    table = tmp_path / "dev"
    table.write_text(
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n"
        "    lo:  9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
        "  sid0:  9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
        " port0:  101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116\n"
    )
    real_open = os.open
    monkeypatch.setattr(os, "open", lambda path, flags: real_open(table if path == "/proc/10/net/dev" else path, flags))
    ports = counters.PortCounters({"h0": 10})
    assert list(ports.read()) == [("h0", "port0", 101, 102, 104, 109, 110, 112)]
    table.write_text(table.read_text().replace("101 ", "201 "))
    assert next(iter(ports.read()))[2] == 201
    ports.close()
    assert list(ports.read()) == []


def test_all_ports_of_a_big_switch_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """One read of a file in /proc returns a page at most."""
    table = tmp_path / "dev"
    rows = [f"  up{port}: " + " ".join(["1234567890"] * 16) for port in range(64)]
    table.write_text("\n".join(["Inter-", " face", *rows, ""]))
    real_pread = os.pread
    monkeypatch.setattr(counters, "open_of", lambda pid, node, name: os.open(table, os.O_RDONLY))
    monkeypatch.setattr(os, "pread", lambda file, size, at: real_pread(file, min(size, 4096), at))
    ports = counters.PortCounters({"p0-t0-0": 10})
    assert [port for _, port, *_ in ports.read()] == [f"up{port}" for port in range(64)]
    ports.close()


def test_the_lists_of_a_batch_are_read_one_after_the_other() -> None:
    text = '[{"a":1},{"a":2}]\n\n[ ]\n[{\n "b": 3\n}]\n'
    assert list(readback._entries(text)) == [{"a": 1}, {"a": 2}, {"b": 3}]
    assert list(readback._entries("")) == []
