"""Step 1: what a program says to lines, before any network is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mrc_testbed.testbed.interop.answers import MOST_PACKETS, read_qp, read_turn
from mrc_testbed.testbed.interop.evidence import Complaints
from mrc_testbed.testbed.interop.program import ContractFailure, ContractProgram

Start = Callable[[], ContractProgram]
"""Starts the program again."""
_T_NS = 40_000_000
_CONFIGURE: dict[str, Any] = {
    "host": 0,
    "planes": 2,
    "udp_port": 49152,
    "rtt_ns": _T_NS,
    "port_rate_bps": 12_500_000,
    "seed": 1,
    "payload_bytes": 4096,
    "mpr": 8,
    "max_wimm": 32,
    "switches_trim": True,
    "icrc": False,
    "timeout": 0,
    "linear_tries": 7,
    "exponential_tries": 5,
    "tsr_unit_ns": 8192,
    "dscp_data": 4,
    "dscp_retransmission": 8,
    "dscp_no_trim": 0,
    "dscp_control": 46,
    "dscp_trimmed": 12,
    "dscp_trimmed_last_hop": 16,
    "peers": [{"peer": 1, "paths": [[0, 0], [0, 1], [1, 0], [1, 1]]}],
}


def judge_lines(start: Start) -> Complaints:
    """Raises ContractFailure and Unsupported."""
    yield from _to_the_end(start, stops=True)
    yield from _to_the_end(start, stops=False)


def _to_the_end(start: Start, stops: bool) -> Complaints:
    program = start()
    try:
        yield from _life(program)
        if stops:
            program.ask("stop", now_ns=5 * _T_NS)
        status = program.exit_status()
        if status:
            yield f"exit status {status} after {'`stop`' if stops else 'the end of its input'}, not 0"
    finally:
        program.close()


def _life(program: ContractProgram) -> Complaints:
    if program.reply("no such request", now_ns=0)["ok"]:
        yield "answered a request that does not exist with ok"
    program.ask("configure", now_ns=0, **_CONFIGURE)
    read_qp(program.ask("open_qp", now_ns=0, peer=1, region_bytes=4096), 4096)
    turn = read_turn(program.ask("turn", now_ns=_T_NS, datagrams=[], most=MOST_PACKETS))
    if any(each.packet[:1] <= b"\xcb" for each in turn.transmit):
        yield "sent data before a QP was connected"
    for junk in ("", "00", "ff" * 64, "d8" + "00" * 31, "c6" * 40):
        read_turn(program.ask("turn", now_ns=2 * _T_NS, datagrams=[[1, 0, 184, 2 * _T_NS, junk]], most=MOST_PACKETS))
    program.ask("quiet", now_ns=3 * _T_NS)
    for turn_number in (3, 4):
        try:
            quiet = read_turn(program.ask("turn", now_ns=turn_number * 100 * _T_NS, datagrams=[], most=MOST_PACKETS))
        except ContractFailure as failure:
            raise ContractFailure(f"after `quiet`: {failure}") from None
        if quiet.transmit:
            yield "sent packets after `quiet`"
            return
