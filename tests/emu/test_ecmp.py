"""Switches that choose the path, on the real kernel: which one, what a cut costs, what ports do to plain packets."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.fabric.batch import IP, query, run_batch
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import network_of
from mrc_testbed.testbed.switching.ecmp import PlainFlow
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.switching.port_rules import PortRule
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.shape import Shape
from tests.emu.plain_traffic import (
    ACKNOWLEDGE,
    FIRST_PORT,
    RC_HEADER_BYTES,
    ROCE,
    SHAPE,
    WRITE_MIDDLE,
    WRITE_ONLY,
    Listener,
    address,
    flood,
    flow,
    flows,
    opened,
    ports_ledger,
    send,
    transfer,
    with_ecmp,
)
from tests.emu.port_stage import options as options
from tests.emu.runs import COMMAND, wait_for
from tests.port_cases import PLAIN_BURSTS, Arrived, Burst, rc_packet

FLOWS = 64
SOCKETS = 16
ECT0, CE = 2, 3
CONTROL_CLASS = 46 << 2


def ping(fabric: Fabric, source: str, target: str) -> bool:
    return ", 0% packet loss" in fabric.node(source).cmd(f"ping -c2 -i0.05 -W2 -q {target}")


@pytest.mark.parametrize(
    "shape",
    [
        clos2_shape(2, 2, 2, 2, 25_000_000, 20_000_000),
        clos2_shape(1, 2, 1, 1, 25_000_000, 0),
        clos2_shape(1, 1, 0, 2, 25_000_000, 0),
    ],
    ids=["2x(2+2)", "1x(2+1)", "1x(1+0)"],
)
def test_every_host_answers_in_every_plane_from_its_address_there(shape: Shape, options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.verify()
        first, last = fabric.plan.hosts[0], fabric.plan.hosts[-1]
        for src, dst in ((first, last), (last, first)):
            for plane, target in fabric.plan.host_ports(dst):
                assert ping(fabric, src.name, target)
                assert f"src {address(fabric, src.name, plane)} " in fabric.node(src.name).cmd(f"ip route get {target}")

    with_ecmp(body, options, shape)


def arrivals(fabric: Fabric, plane: int) -> Counter[int]:
    """Packets of transports that came to each T1 of a plane from group 0."""
    counts = fabric.port_counts()
    found: Counter[int] = Counter()
    for switch in fabric.plan.switches:
        if (switch.tier, switch.plane) == (1, plane):
            at = counts[switch.name, "down0"]
            found[switch.index] = at.in_data + at.in_control
    return found


def took(fabric: Fabric, one: PlainFlow, act: Callable[[], None]) -> Counter[int]:
    """Over which uplinks the packets went that `act` sends."""
    before = arrivals(fabric, one.plane)
    act()
    wait_for(lambda: arrivals(fabric, one.plane) != before, "a packet", 2)
    return arrivals(fabric, one.plane) - before


def connected_send(fabric: Fabric, one: PlainFlow) -> None:
    with opened(fabric, one) as sender:
        sender.connect((address(fabric, one.destination.name, one.plane), one.destination_port))
        sender.send(rc_packet(WRITE_ONLY, 1))


def connect(fabric: Fabric, one: PlainFlow) -> None:
    """A TCP handshake that is refused."""
    with network_of(fabric.pids[one.source.name], one.source.name):
        client = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    with client:
        client.bind((address(fabric, one.source.name, one.plane), one.source_port))
        with pytest.raises(ConnectionRefusedError):
            client.connect((address(fabric, one.destination.name, one.plane), one.destination_port))


def send_one(fabric: Fabric, one: PlainFlow) -> None:
    send(fabric, one, rc_packet(WRITE_ONLY, 1))


@pytest.mark.parametrize(
    ("protocol", "act"),
    [("udp", send_one), ("udp", connected_send), ("tcp", connect)],
    ids=["udp", "connected udp", "tcp"],
)
def test_the_kernel_foretells_the_uplink_of_every_flow(
    protocol: Literal["udp", "tcp"], act: Callable[[Fabric, PlainFlow], None], options: FabricOptions
) -> None:
    def body(fabric: Fabric) -> None:
        asked = [one._replace(protocol=protocol) for one in flows(fabric, "h0", "h2", FLOWS, plane=1)]
        foretold = fabric.predicted_uplinks(asked)
        assert len(set(foretold)) == SHAPE.family.tiers[1]
        went = [took(fabric, one, lambda one=one: act(fabric, one)) for one in asked]  # type: ignore[misc]
        assert [list(found) for found in went] == [[uplink] for uplink in foretold]
        assert fabric.predicted_uplinks([flow(fabric, "h0", "h1", FIRST_PORT)]) == [0]

    with_ecmp(body, options)


def alike(note: Path, options: FabricOptions, **changes: Any) -> int:
    """How many of 64 flows the two T0s of a plane would give the same uplink, were they theirs."""

    def body(fabric: Fabric) -> None:
        fabric.verify()
        other = "fd00:1:0:ff00::1 from fd00:1:0:ff01::1 iif down0 ipproto udp dport 4791"
        lines = "\n".join(f"route get {other} sport {FIRST_PORT + n}" for n in range(FLOWS))
        switches = ("p0-t0-0", "p0-t0-1")
        pids = {switch: fabric.pids[switch] for switch in switches}
        answers = query(["ip", "-6", "-o", "-batch", "-"], pids, dict.fromkeys(switches, lines))
        chosen = [re.findall(r" dev (up\d) ", text) for text in answers.values()]
        assert len(chosen[0]) == FLOWS
        note.write_text(str(sum(a == b for a, b in zip(*chosen, strict=True))))

    with_ecmp(body, options, **changes)
    return int(note.read_text())


def test_switches_choose_alike_or_each_for_itself(options: FabricOptions, tmp_path: Path) -> None:
    """With four uplinks 16 of 64 agree by chance."""
    note = tmp_path / "alike"
    assert alike(note, options, hash_seed=7) == FLOWS
    assert 4 <= alike(note, options, hash_seed=7, ecmp_hash="independent") <= 32


def arrived(fabric: Fabric, listener: Listener, asked: list[PlainFlow], each: int = 4) -> Counter[int]:
    """How many packets of each flow arrive, by its source port."""
    for number in range(each):
        for one in asked:
            send(fabric, one, rc_packet(WRITE_ONLY, number))
    return Counter(port for _, port, _ in listener.take())


@pytest.mark.nightly
def test_a_cut_near_the_sender_loses_nothing_and_a_far_one_what_is_hashed_there(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        asked = flows(fabric, "h0", "h2", FLOWS)
        uplinks = dict(zip((one.source_port for one in asked), fabric.predicted_uplinks(asked), strict=True))
        whole = Counter(dict.fromkeys(uplinks, 4))
        listener = Listener(fabric, "h2")
        assert arrived(fabric, listener, asked) == whole
        fabric.prepare_faults(fabric.plan.node_names)
        for link, loses in (("p0-t0-0:p0-t1-1", False), ("p0-t0-1:p0-t1-1", True)):
            for end in (fabric.plan.link_by_name[link].far, fabric.plan.link_by_name[link].near):
                # Its near end is the port of a T0. With it down, that T1 sees no carrier and has no other way.
                fabric.ports_down([end])
                wait_for(lambda: verified(fabric), "carrier as planned", 2)
                left = {port: 4 for port, uplink in uplinks.items() if not (loses and uplink == 1)}
                assert arrived(fabric, listener, asked) == left
                fabric.ports_up([end])
                wait_for(lambda: verified(fabric), "carrier as planned", 2)
                assert dict(zip(uplinks, fabric.predicted_uplinks(asked), strict=True)) == uplinks
                assert arrived(fabric, listener, asked) == whole
        assert not ports_ledger(fabric, ["p0-t0-0:p0-t1-1", "p0-t0-1:p0-t1-1"]).unexplained

    with_ecmp(body, options)


def verified(fabric: Fabric) -> bool:
    """Carrier goes and comes a moment after the port at the other end."""
    try:
        fabric.verify()
    except FabricError:
        return False
    return True


@pytest.mark.nightly
def test_uplinks_go_one_after_the_other_and_come_back_in_any_order(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        near = [own for own, peer in fabric.plan.ports["p0-t0-0"] if own.name.startswith("up")]
        asked = flows(fabric, "h0", "h2", FLOWS)
        before, listener = fabric.predicted_uplinks(asked), Listener(fabric, "h2")
        fabric.prepare_faults(["p0-t0-0"])
        for port in near:
            fabric.ports_down([port])
            wait_for(lambda: verified(fabric), "carrier as planned", 2)
        assert arrived(fabric, listener, asked, 1).total() == 0
        for up in ([near[2]], [near[0], near[3]], [near[1]]):
            fabric.ports_up(up)
            wait_for(lambda: verified(fabric), "carrier as planned", 2)
            assert arrived(fabric, listener, asked, 1).total() == FLOWS
        assert fabric.predicted_uplinks(asked) == before
        assert fabric.switch_off("p0-t0-0") == 0
        wait_for(lambda: verified(fabric), "carrier as planned", 2)
        fabric.switch_on("p0-t0-0", [own for own, _ in fabric.plan.ports["p0-t0-0"] if own != near[1]])
        assert fabric.ports_held_down() == [near[1]]
        wait_for(lambda: verified(fabric), "carrier as planned", 2)
        fabric.ports_up([near[1]])
        wait_for(lambda: verified(fabric), "carrier as planned", 2)
        assert fabric.predicted_uplinks(asked) == before

    with_ecmp(body, options)


def test_packets_to_a_host_that_is_cut_off_do_not_go_round(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.prepare_faults(["p0-t0-1"])
        fabric.ports_down([fabric.plan.link_by_name["h2:p0-t0-1"].far])
        for one in flows(fabric, "h0", "h2", 10):
            send(fabric, one, rc_packet(WRITE_ONLY, 1))
        wait_for(lambda: arrivals(fabric, 0).total() == 10, "ten packets", 2)
        back = sum(fabric.port_counts()[f"p0-t1-{t1}", "down1"].in_data for t1 in range(SHAPE.family.tiers[1]))
        assert back == 0

    with_ecmp(body, options)


@pytest.mark.nightly
def test_a_lost_next_hop_and_another_hash_are_drift(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        run_batch(IP, "p0-t0-1", fabric.pids["p0-t0-1"], ["route del fd00:1::/48 dev up2"])
        with pytest.raises(FabricError, match="p0-t0-1 lacks route via fd00:1::/48 up2"):
            fabric.verify(["p0-t0-1"])
        fabric.node("p1-t0-0").cmd("echo 0 >/proc/sys/net/ipv6/fib_multipath_hash_policy")
        with pytest.raises(FabricError, match="p1-t0-0 lacks setting net/ipv6/fib_multipath_hash_policy 1"):
            fabric.verify(["p1-t0-0"])

    with_ecmp(body, options)


@pytest.mark.timed
@pytest.mark.parametrize("burst", PLAIN_BURSTS, ids=lambda burst: burst.name)
@pytest.mark.nightly(keep=1)
def test_a_port_marks_and_drops_what_the_table_says(burst: Burst, options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        listener = Listener(fabric, "h2")
        one = next(one for one in flows(fabric, "h0", "h2", FLOWS) if fabric.predicted_uplinks([one]) == [0])
        fabric.set_rate(burst.link, burst.rate_bps)
        with opened(fabric, one, burst.traffic_class) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)
            for data in burst.sent():
                sender.sendto(data, (address(fabric, "h2"), ROCE))
        dscp = burst.traffic_class & ~3
        got = [Arrived(data, dscp | ecn) for data, _, ecn in listener.take(2.5)]
        burst.check(got, fabric.port_counts()[burst.port], slack=2)
        assert not ports_ledger(fabric).unexplained

    with_ecmp(body, options, thresholds=burst.thresholds)


@pytest.mark.timed
def test_packets_that_are_not_capable_are_not_marked_and_control_overtakes(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        listener = Listener(fabric, "h2")
        one = flow(fabric, "h0", "h2", FIRST_PORT)
        other = next(
            two
            for two in flows(fabric, "h1", "h2", FLOWS)
            if fabric.predicted_uplinks([two]) == fabric.predicted_uplinks([one])
        )
        flood(fabric, [one, other], 0.3, 0)
        send(fabric, one, rc_packet(ACKNOWLEDGE, 77, 8), traffic_class=CONTROL_CLASS)
        got = listener.take(1.0)
        assert {ecn for _, _, ecn in got} == {0}
        place = next(place for place, (data, _, _) in enumerate(got) if data[0] == ACKNOWLEDGE)
        assert place < len(got) - 5, "it waited for no queue but that of its own NIC"
        assert sum(counts.out_control for counts in fabric.port_counts().values()) == 3

    with_ecmp(body, options)


def test_tcp_is_counted_by_payload_and_no_packet_of_it_goes_missing(options: FabricOptions) -> None:
    size = 1 << 20

    def body(fabric: Fabric) -> None:
        asked = flow(fabric, "h0", "h2", 40000)._replace(protocol="tcp")
        (uplink,) = fabric.predicted_uplinks([asked])
        assert transfer(fabric, "h0", "h2", size, 40000) == size
        wait_for(lambda: not ports_ledger(fabric).unexplained, "the last acknowledgement", 2)
        ledger = ports_ledger(fabric)
        assert ledger.data.sent == ledger.data.arrived + ledger.data.all_dropped
        assert ledger.high.sent > 50, "acknowledgements"
        came = arrivals(fabric, 0)
        assert set(+came) == {uplink}, "one connection, one path"
        port = fabric.port_counts()[f"p0-t1-{uplink}", "down0"]
        assert size / 9000 <= port.in_data <= size / 1000
        assert port.in_bytes / (port.in_data + port.in_control) < 9100, "one segment a packet"

    with_ecmp(body, options)


def test_losses_by_rule_find_plain_packets(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        listener = Listener(fabric, "h2")
        mine, theirs = (next(find(fabric, host, 1)) for host in ("h0", "h1"))
        link = "p0-t0-0:p0-t1-1"
        rules = {
            PortRule("drop", source=0, destination=2): {theirs.source_port},
            PortRule("drop", source=1): {mine.source_port},
            PortRule("drop", source=0, destination=3): {mine.source_port, theirs.source_port},
            PortRule("drop", data_only=True): set(),
        }
        for rule, left in rules.items():
            handle = fabric.add_rule(link, "far", rule)
            for one in (mine, theirs):
                send(fabric, one, rc_packet(WRITE_MIDDLE, 1))
                send(fabric, one, rc_packet(ACKNOWLEDGE, 2, 8), traffic_class=CONTROL_CLASS)
            got = listener.take()
            assert {port for data, port, _ in got if data[0] == WRITE_MIDDLE} == left
            control = {port for data, port, _ in got if data[0] == ACKNOWLEDGE}
            assert control == ({mine.source_port, theirs.source_port} if rule.data_only else left)
            assert fabric.remove_rule(handle) == 4 - len(got)
        with pytest.raises(ValueError, match="says that it takes way 0"):
            fabric.add_rule(link, "far", PortRule("drop", uplink=0))

    with_ecmp(body, options)


def find(fabric: Fabric, source: str, uplink: int) -> Iterator[PlainFlow]:
    """Flows to h2 that take an uplink."""
    asked = flows(fabric, source, "h2", FLOWS)
    base = 100 * int(source[1:])
    asked = [one._replace(source_port=one.source_port + base) for one in asked]
    return (one for one, found in zip(asked, fabric.predicted_uplinks(asked), strict=True) if found == uplink)


def test_corruption_spares_headers_control_and_tcp(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        listener = Listener(fabric, "h2")
        listener.socket.setsockopt(socket.IPPROTO_UDP, 102, 1)  # UDP_NO_CHECK6_RX
        fabric.add_rule("h2:p0-t0-1", "near", PortRule("corrupt"))
        clean = rc_packet(WRITE_ONLY, 5, 200)
        with opened(fabric, one := flow(fabric, "h0", "h2", FIRST_PORT)) as sender:
            sender.setsockopt(socket.IPPROTO_UDP, 101, 1)  # UDP_NO_CHECK6_TX
            for _ in range(200):
                sender.sendto(clean, (address(fabric, "h2"), ROCE))
        send(fabric, one, rc_packet(ACKNOWLEDGE, 2, 30), traffic_class=CONTROL_CLASS)
        got = [data for data, _, _ in listener.take()]
        spoiled = [data for data in got if data[0] == WRITE_ONLY]
        assert len(spoiled) == 200
        places = {at for data in spoiled for at, (was, now) in enumerate(zip(clean, data, strict=True)) if was != now}
        assert min(places) >= RC_HEADER_BYTES
        assert max(places) < len(clean) - 4
        assert all(sum((a ^ b).bit_count() for a, b in zip(clean, data, strict=True)) == 1 for data in spoiled)
        listener.socket.close()
        assert transfer(fabric, "h0", "h2", 100_000, 40000) == 100_000
        assert fabric.port_counts()["h2", "port0"].in_corrupted == 200

    with_ecmp(body, options)


def test_with_repath_the_flow_label_counts_and_nothing_is_foretold(options: FabricOptions) -> None:
    def body(fabric: Fabric) -> None:
        fabric.verify()
        one = flow(fabric, "h0", "h2", FIRST_PORT)
        with pytest.raises(MissingCapability, match=r"cannot be predicted: ecmp\.repath is on"):
            fabric.predicted_uplinks([one])
        used: Counter[int] = Counter()
        for label in range(1, 33):
            used += took(fabric, one, lambda label=label: labelled(fabric, one, label))  # type: ignore[misc]
        assert len(used) == SHAPE.family.tiers[1]
        again = [took(fabric, one, lambda: labelled(fabric, one, 5)) for _ in range(8)]
        assert len({uplink for found in again for uplink in found}) == 1

    with_ecmp(body, options, repath=True)


def labelled(fabric: Fabric, one: PlainFlow, label: int) -> None:
    """One packet with a flow label."""
    with opened(fabric, one) as sender:
        sender.setsockopt(socket.IPPROTO_IPV6, 33, 1)  # IPV6_FLOWINFO_SEND
        sender.setsockopt(socket.IPPROTO_IPV6, 70, 0)  # IPV6_AUTOFLOWLABEL
        sender.sendto(rc_packet(WRITE_ONLY, 1), (address(fabric, "h2"), ROCE, label, 0))


def test_plain_shapers_choose_by_the_packet_too(options: FabricOptions) -> None:
    """Without a port program the hash that a socket has given its packets must not decide."""

    def body(fabric: Fabric) -> None:
        fabric.verify()
        listener = Listener(fabric, "h2")
        asked = flows(fabric, "h0", "h2", FLOWS)
        assert arrived(fabric, listener, asked, 1).total() == FLOWS
        with pytest.raises(MissingCapability, match="cannot be predicted: switches hash as plain shapers do"):
            fabric.predicted_uplinks(asked)
        before = sent_up(fabric)
        for _ in range(SOCKETS):
            connected_send(fabric, asked[0])
        # All on one of them, whatever else neighbours say to each other meanwhile.
        wait_for(
            lambda: max((sent_up(fabric) - before).values(), default=0) >= SOCKETS, "one uplink to carry one 5-tuple", 2
        )

    with_ecmp(body, options, switch_ports="plain shaper")


def sent_up(fabric: Fabric) -> Counter[str]:
    """Packets that p0-t0-0 has sent on each of its uplinks."""
    rows = [row for row in fabric.sample_ports() if row[0] == "p0-t0-0" and row[1].startswith("up")]
    return Counter({row[1]: row[6] for row in rows})


def test_the_shell_reaches_hosts_by_name_and_tcp_runs_in_it(tmp_path: Path) -> None:
    talk = tmp_path / "talk.py"
    talk.write_text(TALK)
    changes = ("faults=[]", "expect=[]", "transport=roce", "routing=ecmp-static")
    small = ["scenarios/quickstart.yaml", *(word for change in changes for word in ("--set", change))]
    commands = ["h0 ping -c2 -W2 h5", f"h5 {sys.executable} {talk} listen &", f"h0 {sys.executable} {talk} h5"]
    commands += ["p0-t0-0 ip -6 route show fd00:1::/48"]
    asked = [word for command in commands for word in ("-c", command)]
    ran = subprocess.run([*COMMAND, "shell", *small, *asked], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert " 0% packet loss" in ran.stdout
    assert "sent 262144" in ran.stdout
    assert ran.stdout.count("nexthop via") == 4


TALK = """
import socket, sys, time
if sys.argv[1] == "listen":
    with socket.create_server(("::", 5001), family=socket.AF_INET6) as server, server.accept()[0] as stream:
        while stream.recv(65536):
            pass
else:
    for _ in range(100):
        try:
            stream = socket.create_connection((sys.argv[1], 5001), 5)
            break
        except OSError:
            time.sleep(0.05)
    stream.sendall(bytes(262144))
    stream.shutdown(socket.SHUT_WR)
    stream.settimeout(10)
    assert stream.recv(1) == b""
    print("sent 262144")
"""
