"""The port program's source, its maps and its thresholds, without a kernel: both languages say the same."""

from __future__ import annotations

import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.hosts import udp
from mrc_testbed.hosts.common import bth
from mrc_testbed.hosts.mrc import wire
from mrc_testbed.hosts.mrc.config import EndpointConfig
from mrc_testbed.hosts.rc import wire as rc
from mrc_testbed.testbed.errors import FabricError, MissingCapability
from mrc_testbed.testbed.fabric import commands, libbpf, port_maps, port_object, port_program
from mrc_testbed.testbed.fabric.port_maps import (
    SETTINGS,
    SharedArray,
    SharedRules,
    port_counts,
    port_entry,
    port_hits,
    settings_entry,
)
from mrc_testbed.testbed.fabric.port_program import late_ns
from mrc_testbed.testbed.switching import port_counts as layout
from mrc_testbed.testbed.switching import port_rules
from mrc_testbed.testbed.switching.adaptive import BAND_SHARES
from mrc_testbed.testbed.switching.classes import (
    MRC_DATA,
    OPCODES,
    ROCE_DATA,
    USUAL_MARKS,
    USUAL_TRIMMING,
    DataPackets,
    DscpMarks,
    TrimRules,
    least_trim_bytes,
)
from mrc_testbed.testbed.switching.options import FabricOptions, level_bdp_bytes, program_queue_bytes
from mrc_testbed.testbed.switching.port_counts import PortHits
from mrc_testbed.testbed.switching.port_rules import PortRule, RuleTable, as_seen_by_program
from mrc_testbed.testbed.switching.thresholds import NEVER, PortLevels, PortThresholds
from mrc_testbed.topos.families.clos2 import clos2_shape
from mrc_testbed.topos.nodes import FIRST_IFINDEX, Interface
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import WIRE_BYTES

SHAPE = clos2_shape(planes=1, t0_groups=2, t1=1, hosts_per_t0=1, port_rate_bps=25_000_000, rtt_ns=20_000_000)
PLAN = build_plan(SHAPE)
FILES = (
    port_object.SOURCE,
    *(port_object.SOURCE.parent / name for name in ("packets.h", "mrc_packets.h", "adaptive.h")),
)
SOURCE = "".join(file.read_text(encoding="utf-8") for file in FILES)
DEFINES = {name: text for name, text in re.findall(r"#define (\w+) ([^/\n]+)", SOURCE)}


def enum(name: str) -> dict[str, int]:
    found = re.search(rf"enum {name} {{([^}}]*)}}", SOURCE)
    assert found
    values, following = {}, 0
    for part in found[1].split(","):
        key, _, value = part.partition("=")
        following = int(value) if value else following
        values[key.strip()] = following
        following += 1
    return values


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FIRST_IFINDEX", FIRST_IFINDEX),
        ("ROCE_PORT", udp.PORT),
        ("STAB_OVERHEAD", commands.STAB_OVERHEAD_BYTES),
        ("COST_SHIFT", port_maps.COST_SHIFT),
        ("RULES", port_rules.RULES),
        ("ECN_MASK", bth.ECN_MASK),
        ("ECN_CE", bth.ECN_CE),
        ("OPCODES", OPCODES),
        ("ICRC_BYTES", bth.ICRC_BYTES),
        ("BANDS", len(BAND_SHARES) + 1),
    ],
)
def test_the_program_and_the_testbed_use_the_same_numbers(name: str, value: int) -> None:
    assert int(DEFINES[name], 0) == value


def test_ports_and_endpoints_have_the_same_usual_dscps() -> None:
    config = EndpointConfig(host=0, planes=1, udp_port=1, rtt_ns=1, port_rate_bps=1)
    sent = config.dscp_data, config.dscp_retransmission, config.dscp_no_trim, config.dscp_control
    assert DscpMarks(*sent) == USUAL_MARKS
    assert (config.dscp_trimmed, config.dscp_trimmed_last_hop) == (USUAL_TRIMMING.dscp, USUAL_TRIMMING.dscp_last_hop)
    assert least_trim_bytes(0) == wire.STAMPED_BYTES


def test_ports_and_endpoints_have_the_same_data() -> None:
    """A RoCE packet is let off with the longest headers that its opcode may have."""
    mrc = {code: wire.DATA_HEADER_BYTES for code in range(bth.WRITE_FIRST, wire.LAST_DATA_OPCODE + 1)}
    mrc |= dict.fromkeys(bth.HAS_IMMEDIATE, wire.DATA_HEADER_BYTES + bth.IMMEDIATE_BYTES)
    assert MRC_DATA.headers == mrc
    assert max(ROCE_DATA.headers) == rc.WRITE_ONLY_IMM
    assert {*ROCE_DATA.headers.values()} == {bth.BTH_BYTES + rc.RETH_BYTES + bth.IMMEDIATE_BYTES}


def test_what_operator_and_transport_choose_is_written_in_the_order_of_the_program() -> None:
    fields = re.search(r"struct settings {([^}]*)}", SOURCE)
    assert fields
    names = re.findall(r"(\w+)(?:\[\w+\])?[,;]", re.sub(r"/\*.*?\*/", "", fields[1], flags=re.DOTALL))
    data = DataPackets({7: 12, 200: 30}, by_opcode=True, dscps=frozenset({1, 40}))
    options = FabricOptions("ifb", "none", "port program", data=data, trims=False)
    options = replace(options, marks=DscpMarks(1, 2, 0, 3), trimming=TrimRules(256, 48, 49, first=False))
    entry = dict(zip(names, SETTINGS.unpack(settings_entry(options)), strict=True))
    headers = entry.pop("headers")
    assert (headers[7], headers[200], sum(headers)) == (12, 30, 42)
    chosen = {"control": 3, "data": 1, "retransmission": 2, "trimmed": 48, "trimmed_last_hop": 49}
    chosen |= {"data_dscps": 1 << 1 | 1 << 40, "by_opcode": 1, "trims": 0}
    assert entry == {**chosen, "trimmed_first": 0, "trim_bytes": 256}


@pytest.mark.parametrize(
    ("data", "dscps"),
    [
        (MRC_DATA, set(range(64)) - {USUAL_MARKS.control}),
        (ROCE_DATA, set(range(64))),
        (DataPackets(dscps=frozenset({10})), {10}),
    ],
)
def test_the_dscps_of_data_are_those_said_or_all_that_can_be(data: DataPackets, dscps: set[int]) -> None:
    assert data.data_dscps(USUAL_MARKS) == dscps


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"headers": {256: 12}}, "headers"),
        ({"headers": {-1: 12}}, "headers"),
        ({"headers": {1: 0}}, "headers"),
        ({"headers": {1: 256}}, "headers"),
        ({"dscps": frozenset({64})}, "dscps"),
        ({"dscps": frozenset({-1})}, "dscps"),
        ({"by_opcode": True}, "by_opcode"),
    ],
)
def test_data_packets_that_no_port_could_know_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}: "):
        DataPackets(**wrong)


def test_htb_classes_agree() -> None:
    for name, text in (("CLASS_HIGH", commands.CLASS_CONTROL), ("CLASS_LOW", commands.CLASS_DATA)):
        major, _, minor = text.partition(":")
        assert int(DEFINES[name], 0) == int(major, 16) << 16 | int(minor, 16)


def test_enums_agree() -> None:
    names = ("DATA", "TRIMMED", "CONTROL", "OTHER", "CLASSES")
    assert list(enum("class").values()) == [getattr(layout, name) for name in names]
    names = ("PASSED", "CHANGED", "CUT", "DROPPED", "VERDICTS")
    assert list(enum("verdict").values()) == [getattr(layout, name) for name in names]
    assert port_maps.COUNTS.size == 8 * layout.COUNTS
    assert enum("port_flag") == {"LAST_HOP": port_maps.LAST_HOP}
    flags = [
        PortRule("drop", uplink=0),
        PortRule("drop", source=0),
        PortRule("drop", destination=0),
        PortRule("drop", data_only=True),
        PortRule("drop", of_hosts=True),
    ]
    assert [port_rules.RULE.unpack(rule.entry())[2] for rule in flags] == list(enum("match").values())
    actions = [port_rules.RULE.unpack(PortRule(action).entry())[0] for action in ("drop", "corrupt")]
    assert actions == list(enum("action").values())


@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang: make setup")
@pytest.mark.parametrize("plain", [False, True])
def test_map_values_have_the_size_that_python_reads(plain: bool) -> None:
    loaded = libbpf.BpfObject(port_object.object_file(plain))
    sizes = {name: loaded.map_value_bytes(name) for name in port_maps.VALUE_BYTES}
    constants = loaded.map_value_bytes(".rodata")
    loaded.close()
    assert sizes == port_maps.VALUE_BYTES
    assert constants == SETTINGS.size


@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang: make setup")
@pytest.mark.parametrize("plain", [False, True])
def test_the_source_compiles_without_a_warning(tmp_path: Path, plain: bool) -> None:
    include = f"-I/usr/include/{platform.machine()}-linux-gnu"
    command = [
        "clang",
        *port_object.flags(plain),
        "-Wall",
        "-Wextra",
        "-Werror",
        include,
        "-c",
        str(port_object.SOURCE),
    ]
    result = subprocess.run([*command, "-o", str(tmp_path / "o")], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_a_file_that_is_no_object_is_one_readable_line(tmp_path: Path) -> None:
    broken = tmp_path / "port.o"
    broken.write_bytes(b"no ELF")
    with pytest.raises(
        MissingCapability, match=r"port\.o is damaged: .*ELF.* Fix: remove .*port\.o and run make setup$"
    ):
        libbpf.BpfObject(broken)


def test_a_missing_library_comes_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(libbpf, "_LIBRARY", str(tmp_path / "libbpf.so.1"))
    with pytest.raises(MissingCapability, match=r"^libbpf cannot be loaded: .*libbpf1$"):
        libbpf.BpfObject(tmp_path / "port.o")


WRITES_AN_OBJECT = '#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\nprintf object >"$1"\n'


def compiler(folder: Path, script: str) -> None:
    """A `clang` of our own, first in the PATH."""
    program = folder / "clang"
    program.write_text(script)
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("", "clang cannot be started: Exec format error. Fix: make setup, or apt-get install clang"),
        (
            "#!/bin/sh\necho 'fatal error: no such option' >&2; exit 1\n",
            "clang does not compile the port program: fatal",
        ),
    ],
)
def test_a_compiler_that_fails_is_not_taken_for_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, told: str
) -> None:
    compiler(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(MissingCapability) as refusal:
        port_object.object_file()
    assert str(refusal.value).startswith(told)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_what_root_compiles_belongs_to_the_owner_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler(tmp_path, WRITES_AN_OBJECT)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    os.chown(tmp_path, 12345, 12346)
    found = port_object.object_file()
    assert found.read_bytes() == b"object"
    for path in (found, found.parent, found.parent.parent):
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)
    assert list(found.parent.iterdir()) == [found]


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler(tmp_path, WRITES_AN_OBJECT)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / "var").write_text("a file")
    with pytest.raises(MissingCapability, match=r"cannot be stored: .*Fix: make .*mrc-testbed a folder"):
        port_object.object_file()


def test_what_clang_says_is_one_line_with_the_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bad = tmp_path / "bad.bpf.c"
    bad.write_text("int broken(")
    monkeypatch.setattr(port_object, "SOURCE", bad)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(MissingCapability, match="apt-get install clang libbpf-dev linux-libc-dev") as refusal:
        port_object.object_file()
    assert "\n" not in str(refusal.value)
    assert not port_object.cached_path().exists()


def test_a_changed_source_has_another_place_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = port_object.cached_path()
    other = tmp_path / "port.bpf.c"
    other.write_bytes(port_object.SOURCE.read_bytes() + b"\n")
    monkeypatch.setattr(port_object, "SOURCE", other)
    assert port_object.cached_path() != before


def test_levels_are_plane_bdps() -> None:
    """25 Mb/s x 20 ms = 62 500 bytes."""
    assert PortThresholds().in_bytes(62_500, last_hop=False) == PortLevels(12_500, 50_000, 62_500, 187_500, False)
    assert PortThresholds().in_bytes(62_500, last_hop=True) == PortLevels(NEVER, NEVER, 93_750, 187_500, True)


def test_a_short_rtt_keeps_the_levels_apart() -> None:
    short = clos2_shape(1, 2, 1, 1, 25_000_000, 0)
    assert level_bdp_bytes(SHAPE, SHAPE.port_rate_bps) == 62_500
    assert level_bdp_bytes(short, short.port_rate_bps) == 14 * WIRE_BYTES


def test_the_queue_behind_the_program_is_deeper_than_its_drop_level() -> None:
    for shape in (SHAPE, clos2_shape(1, 2, 1, 1, 25_000_000, 0)):
        deep, rate = PortThresholds(drop=5), shape.port_rate_bps
        assert program_queue_bytes(shape, rate, deep) >= 5 * level_bdp_bytes(shape, rate) + 32 * WIRE_BYTES


@pytest.mark.parametrize(
    "wrong", [{"ecn_low": 0.9}, {"ecn_low": -1}, {"drop": 1.2}, {"trim": 0}, {"ecn_high": 4}, {"trim_last_hop": 3.5}]
)
def test_levels_out_of_order_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must grow"):
        PortThresholds(**wrong)


def test_a_port_holds_its_levels_as_times_at_its_rate() -> None:
    levels = PortThresholds().in_bytes(62_500, last_hop=False)
    assert port_maps.PORT.unpack(port_entry(levels, 25_000_000, 10, 11)) == (
        320 << 20, 4_000_000, 16_000_000, 20_000_000, 60_000_000, 0, 10, 11,
    )  # fmt: skip
    assert port_maps.PORT.unpack(port_entry(levels, 2_500_000, 0, 0))[3] == 200_000_000
    last_hop = PortThresholds().in_bytes(62_500, last_hop=True)
    assert port_maps.PORT.unpack(port_entry(last_hop, 25_000_000, 0, 0))[5] == 1


def test_ports_of_every_rate_fit_64_bits() -> None:
    levels = PortThresholds().in_bytes(10**9, last_hop=True)
    for rate in (100_000, 800_000_000_000):
        cost = port_maps.PORT.unpack(port_entry(levels, rate, 0, 0))[0]
        assert cost > 0
        assert cost * 9215 < 1 << 64


def shared(value_bytes: int) -> SharedArray:
    descriptor = os.memfd_create("map")
    os.ftruncate(descriptor, 2 * mmap.PAGESIZE)
    return SharedArray(descriptor, 2, value_bytes)


def test_counts_are_named_by_class_and_verdict() -> None:
    egress, ingress = shared(port_maps.COUNTS.size), shared(port_maps.COUNTS.size)
    numbers = [10**k for k in range(16)]
    port_maps.COUNTS.pack_into(egress.memory, egress.at(1), *numbers, *[2 * n for n in numbers])
    port_maps.COUNTS.pack_into(ingress.memory, ingress.at(1), *[3 * n for n in numbers], *numbers)
    counts = port_counts(egress, ingress, 1)
    assert (counts.out_data, counts.out_passed, counts.out_marked) == (1111, 11, 10)
    assert (counts.out_trimmed, counts.out_dropped) == (100, 1000)
    assert (counts.out_trimmed_through, counts.out_control) == (1111 * 10**4, 1111 * 10**8)
    assert counts.out_trimmed_dropped == 10**7
    assert (counts.out_other, counts.out_other_marked, counts.out_other_dropped) == (1111 * 10**12, 10**13, 10**15)
    assert counts.out_bytes == 2 * sum(numbers)
    assert counts.out_dropped_bytes == 2 * (10**3 + 10**7 + 10**11 + 10**15)
    seen = (counts.in_data, counts.in_trimmed, counts.in_control, counts.in_other)
    assert seen == tuple(3333 * 10**k for k in (0, 4, 8, 12))
    dropped = (counts.in_data_dropped, counts.in_trimmed_dropped, counts.in_control_dropped, counts.in_other_dropped)
    assert dropped == tuple(3 * 10**k for k in (3, 7, 11, 15))
    assert counts.in_corrupted == 30
    assert port_counts(egress, ingress, 0).out_data == 0
    assert port_hits(egress, ingress, 1) == PortHits(10, 100, 1000, sum(dropped), 30)
    assert port_hits(egress, ingress, 0) == PortHits(0, 0, 0, 0, 0)


def test_rules_of_one_port_stand_side_by_side() -> None:
    rules = shared(port_maps.RULES_BYTES)
    table = RuleTable(SharedRules(rules))
    port = Interface("h0", "port0", FIRST_IFINDEX + 1)
    handles = [table.add(port, PortRule("drop", 0.25, source=k)) for k in range(3)]
    start = rules.at(1)
    assert rules.memory[start] == 0b111
    assert table.remove(handles[1]) == 0
    assert rules.memory[start] == 0b101
    again = table.add(port, PortRule("corrupt", uplink=7))
    assert rules.memory[start] == 0b111
    entry = port_rules.RULE.unpack_from(rules.memory, start + 8 + again.slot * port_rules.RULE.size)
    assert entry == (2, 0xFFFFFFFF, 1, 7, 0, 0, 0)
    with pytest.raises(ValueError, match="this rule at h0 port0 is gone already"):
        table.remove(handles[1])
    assert rules.memory[start] == 0b111, "the old handle does not take the new rule away"


def test_rules_that_hold_are_compared_with_those_that_should() -> None:
    rules = shared(port_maps.RULES_BYTES)
    table, ports = RuleTable(SharedRules(rules)), [Interface("h0", f"port{n}", FIRST_IFINDEX + n) for n in range(2)]
    handles = [table.add(ports[1], PortRule("drop")) for _ in range(2)]
    table.verify(ports, handles)
    with pytest.raises(FabricError, match=r"h0: read-back of the rules at port1: slots \[0, 1\] hold, \[1\] should"):
        table.verify(ports, handles[1:])
    rules.memory[rules.at(1)] = 0b10
    with pytest.raises(FabricError, match=r"slots \[1\] hold, \[0, 1\] should"):
        table.verify(ports, handles)
    table.verify(ports, handles[1:])
    rules.memory[rules.at(0) + 1] = 1
    with pytest.raises(FabricError, match=r"port0: slots \[8\] hold, \[\] should"):
        table.verify(ports, handles[1:])


def test_chances_are_shares_of_two_to_the_32() -> None:
    def chance(probability: float) -> int:
        value: int = port_rules.RULE.unpack(PortRule("drop", probability).entry())[1]
        return value

    assert [chance(p) for p in (0.5, 0.2, 1.0)] == [1 << 31, 858993459, 0xFFFFFFFF]
    assert chance(1 - 1e-12) == 0xFFFFFFFE, "only 1.0 is always"


@pytest.mark.parametrize("wrong", [{"probability": 0}, {"probability": 1.1}, {"uplink": 256}, {"source": -1}])
def test_a_rule_outside_its_fields_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="rule's"):
        PortRule("drop", **wrong)  # type: ignore[arg-type]


def test_a_port_holds_eight_rules() -> None:
    table, port = RuleTable(SharedRules(shared(port_maps.RULES_BYTES))), Interface("h0", "port0", FIRST_IFINDEX)
    for _ in range(8):
        table.add(port, PortRule("drop"))
    with pytest.raises(FabricError, match="h0: add a rule at port0: it holds 8 rules already"):
        table.add(port, PortRule("drop"))


def test_rules_where_packets_name_no_path_are_by_addresses_and_by_their_link() -> None:
    ecmp = build_plan(clos2_shape(1, 2, 2, 2, 25_000_000, 0), Routing.ECMP_STATIC)
    port = ecmp.link_by_name["p0-t0-0:p0-t1-1"].far
    seen = as_seen_by_program(PortRule("drop", 0.5, source=1, destination=2, data_only=True), port, ecmp)
    assert seen == PortRule("drop", 0.5, source=0 << 16 | 2, destination=1 << 16 | 1, data_only=True)
    with pytest.raises(ValueError, match="no packet that comes to p0-t1-1 down0 says that it takes way 1"):
        as_seen_by_program(PortRule("drop", uplink=1), port, ecmp)
    rule = PortRule("drop", uplink=3, source=200)
    assert as_seen_by_program(rule, PLAN.links[0].near, PLAN) is rule


def test_headers_belong_to_the_place_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = port_object.cached_path(), port_object.cached_path(plain=True)
    assert before[0] != before[1]
    for file in port_object.SOURCE.parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "packets.h").write_bytes(b"\n" + (tmp_path / "packets.h").read_bytes())
    monkeypatch.setattr(port_object, "_HEADERS", tmp_path)
    assert port_object.cached_path() != before[0]


def test_hosts_have_programs_of_their_own() -> None:
    assert list(port_program.attach_lines(PLAN, "h0", Path("/pins"))) == [
        "qdisc add dev port0 clsact",
        "filter add dev port0 ingress prio 1 handle 1 bpf direct-action object-pinned /pins/nic_ingress",
        "filter add dev port0 egress prio 1 handle 1 bpf direct-action object-pinned /pins/nic_egress",
    ]
    assert list(port_program.attach_lines(PLAN, "p0-t1-0", Path("/pins")))[:3] == [
        "qdisc add dev down0 clsact",
        "filter add dev down0 ingress prio 1 handle 1 bpf direct-action object-pinned /pins/port_ingress",
        "filter add dev down0 egress prio 1 handle 1 bpf direct-action object-pinned /pins/port_egress",
    ]


def test_programmed_ports_have_no_filter_of_their_own_and_those_of_switches_a_size_table() -> None:
    options = FabricOptions("ifb", "none", "port program")
    switch = list(commands.queue_lines(PLAN, "p0-t1-0", options))
    assert switch[0] == "qdisc add dev down0 root handle 1: stab overhead 1 htb default 20"
    assert not [line for line in switch if line.startswith("filter")]
    assert switch[5] == "qdisc add dev down0 parent 1:20 handle 20: bfifo limit 323116"
    host = list(commands.queue_lines(PLAN, "h0", options))
    assert host[0] == "qdisc add dev port0 root handle 1: htb default 20"
    assert not [line for line in host if line.startswith("filter")]


def test_the_last_hop_is_a_switch_port_towards_a_host() -> None:
    assert port_program.is_last_hop("p0-t0-0", "h0")
    assert not port_program.is_last_hop("h0", "p0-t0-0")
    assert not port_program.is_last_hop("p0-t0-0", "p0-t1-0")


def test_late_is_a_quarter_of_t_and_more_where_packets_wait_for_longer() -> None:
    ms = 1_000_000
    assert late_ns(20 * ms, 60 * ms) == 5 * ms
    assert late_ns(2 * ms, 6 * ms) == 1.25 * ms
    assert late_ns(20 * ms, 64 * 20 * ms) == 1280 * ms // 12
