"""Rows by capture: what our own endpoint and its mutants sent is judged by the packets alone."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.hosts.mrc import wire
from mrc_testbed.testbed.interop.by_capture import capture_row
from mrc_testbed.testbed.interop.capture_judges import in_order
from mrc_testbed.testbed.interop.captured import Captured, SeenPacket
from mrc_testbed.testbed.interop.entries import ListedCapture, ours
from mrc_testbed.testbed.interop.evidence import Role
from mrc_testbed.testbed.interop.steps import STEPS
from mrc_testbed.testbed.wireview.capture import CaptureReader
from tests.unit.calls import Call
from tests.unit.interop.judged import judged, python
from tests.unit.interop.mutants import MUTANTS

PATIENT_S = 30.0


def _files(place: Path, run: str, ports: int = 2) -> tuple[Path, ...]:
    return tuple(sorted((place / "subject" / run / "pcap").glob("*.pcapng"))[:ports])


@dataclass(frozen=True)
class Runs:
    """Captures of our own endpoint on h0."""

    place: Path

    def marks(self, run: str, role: Role = Role.BOTH, host: str = "", ports: int = 2) -> str:
        """Of steps 1 to 8, a letter each: p, f or n."""
        row = capture_row(ListedCapture("a", _files(self.place, run, ports), role, host), lambda _: None)
        return "".join(result.mark.value[0] for result in row.results)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    place = tmp_path_factory.mktemp("captures")
    for step, run in ((4, "spray"), (5, "loss"), (6, "incast-receiver"), (7, "peers-port")):
        judged(place, ours().command, step, run, answer_s=PATIENT_S)
    return Runs(place)


def test_our_endpoint_passes_where_a_capture_shows_a_step(runs: Runs) -> None:
    assert runs.marks("spray") == "nnppnnnn"
    assert runs.marks("loss", Role.SENDER) == "nppppnnn"
    assert runs.marks("incast-receiver") == "nppppp" + "nn"
    assert runs.marks("incast-receiver", Role.RECEIVER, "h0")[5] == "p"
    assert runs.marks("peers-port", Role.SENDER, "h0")[6] == "p"


def test_what_a_port_of_several_does_not_show_is_no_pass_and_no_fail(runs: Runs) -> None:
    assert "f" not in runs.marks("incast-receiver", ports=1)
    assert runs.marks("incast-receiver", ports=1)[3] == "n"
    assert runs.marks("spray", host="h3") == "nnnnnnnn", "h3 took no part"


CAUGHT = {
    "SaysNotThatItIsAgain": (5, Role.SENDER, "without the bit that says so"),
    "SacksAll": (4, Role.RECEIVER, "which had not come"),
    "IgnoresTrims": (6, Role.RECEIVER, "packets came trimmed, and NACKs asked for 0 of them"),
    "IgnoresPeersPort": (7, Role.RECEIVER, "h0 answered none of"),
}
"""Mutants by name: the step at which their captures fail, as what, and why."""


@pytest.mark.parametrize("name", CAUGHT)
def test_a_mutant_is_caught_by_its_capture(tmp_path: Path, name: str) -> None:
    step, role, why = CAUGHT[name]
    mutant = MUTANTS[name]
    judged(tmp_path, python("mutants.py", name), mutant.step, mutant.run, answer_s=PATIENT_S)
    files = _files(tmp_path, mutant.run or STEPS[mutant.step - 1].word)
    row = capture_row(ListedCapture("a", files, role, "h0"), lambda _: None)
    assert row.failed
    assert any(why in reason for reason in row.results[step - 1].reasons), row.results


def _data(psn: int, t_ns: int, **more: Any) -> SeenPacket:
    values = {"qp": 16, "psn": psn, "rtx": False, "trimmed": False, **more}
    return SeenPacket(t_ns, "a", "b", (b"", 1, 2, 4), "0/1", "WRITE_ONLY", True, values)


def test_order_is_asked_for_on_a_path_alone() -> None:
    rising = [_data(psn, psn) for psn in (0xFFFFFE, 0xFFFFFF, 0, 1)]
    assert not list(in_order(Captured(packets=rising)))
    turned = [_data(5, 1), _data(4, 2)]
    assert list(in_order(Captured(packets=turned))) == [
        "PSN 4 of QP 0x10 comes after 5 on EV 0/1, not marked as sent again"
    ]
    other_path = replace(turned[1], path=(b"", 9, 9, 4))
    assert not list(in_order(Captured(packets=[turned[0], other_path])))
    assert not list(in_order(Captured(packets=[turned[0], _data(4, 2, rtx=True)])))


def test_a_capture_in_the_matrix(tmp_path: Path, runs: Runs, call: Call) -> None:
    """Another UDP port and a wrong ICRC are noted, not failed."""
    odd = tmp_path / "odd.pcap"
    assert _with_other_ports(_files(runs.place, "spray"), odd) > 100
    file = tmp_path / "list.json"
    file.write_text(json.dumps([{"name": "theirs", "pcap": "odd.pcap"}, {"name": "no", "pcap": "list.json"}]))
    assert call("interop", str(file), "-o", str(tmp_path / "x" / "matrix.html")).err.count("not a capture file") == 1
    file.write_text(json.dumps([{"name": "theirs", "pcap": "odd.pcap"}]))
    done = call("interop", str(file), "-o", str(tmp_path / "m" / "matrix.html"))
    assert (done.status, done.out.count("  pass\n")) == (0, 2), done.out
    row = json.loads((tmp_path / "m" / "matrix.json").read_text())["rows"][0]
    assert row["form"] == "pcap"
    assert any("UDP port 5000" in note for note in row["notes"])
    page = (tmp_path / "m" / "matrix.html").read_text()
    assert "packets of MRC in the capture" in page
    assert "a capture does not show lines" in page


def test_packets_that_cannot_be_read_fail_the_steps_that_are_shown(tmp_path: Path, runs: Runs) -> None:
    def other_version(frame: bytearray, port_at: int) -> None:
        if frame[port_at + 6] == wire.SACK:
            frame[port_at + 7] |= 1

    file = tmp_path / "version.pcap"
    _changed(_files(runs.place, "spray"), file, other_version)
    row = capture_row(ListedCapture("a", (file,), Role.SENDER), lambda _: None)
    assert [result.mark.value[0] for result in row.results] == list("nnffnnnn")
    assert "packets to UDP port 4791 cannot be read: transport version not 0" in row.results[2].reasons[0]


def _with_other_ports(files: tuple[Path, ...], into: Path) -> int:
    """The same packets to UDP port 5000; returns how many."""

    def other_port(frame: bytearray, port_at: int) -> None:
        frame[port_at : port_at + 2] = struct.pack(">H", 5000)

    return _changed(files, into, other_port)


def _changed(files: tuple[Path, ...], into: Path, change: Callable[[bytearray, int], None]) -> int:
    """All packets in one plain file, each changed: `change` hears where its UDP destination port is."""
    records = sorted((one for file in files for one in CaptureReader(file)), key=lambda one: one.time_ns)
    content = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    for one in records:
        frame = bytearray(one.frame)
        change(frame, frame.index(struct.pack(">H", 4791)))
        seconds, rest = divmod(one.time_ns, 10**9)
        content += struct.pack("<IIII", seconds, rest, len(frame), one.wire_bytes) + frame
    into.write_bytes(content)
    return len(records)
