"""What the Lua dissector in real tshark says of a capture, beside what hosts/mrc/wire.py parses from the same file."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from mrc_testbed.testbed.wireview.capture import CaptureReader
from mrc_testbed.testbed.wireview.decode import dissector_path
from mrc_testbed.testbed.wireview.frame import Frame, unwrap
from mrc_testbed.testbed.wireview.names import NACK_REASONS, address_name, still_to_go
from mrc_testbed.testbed.wireview.packet import Packet, parse
from mrc_testbed.testbed.wireview.runs import runs_text
from tests.hangs import HANGS_S

NUMBERS = {
    "mrc.opcode": "opcode",
    "mrc.qp": "qp",
    "mrc.message": "message",
    "mrc.rqmsn": "immediate_message",
    "mrc.timestamp": "timestamp",
    "mrc.address": "address",
    "mrc.rkey": "rkey",
    "mrc.length": "write_bytes",
    "mrc.immediate": "immediate",
    "mrc.sack.cack": "cack",
    "mrc.sack.trigger": "trigger",
    "mrc.sack.offset": "sack_offset",
    "mrc.sack.bitmap": "bitmap",
    "mrc.sack.mpr": "mpr",
    "mrc.sack.out_of_order": "out_of_order",
    "mrc.sack.penalty": "penalty",
    "mrc.probe.id": "probe_id",
    "mrc.endpoint.request_id": "request_id",
    "mrc.nack.reason": "reason",
}
"""Dissector field -> key of `Packet.values`, for what is a number on both sides."""
FLAGS = {
    "mrc.rtx": "rtx",
    "mrc.ack_request": "ack_request",
    "mrc.trimmed": "trimmed",
    "mrc.sack.restore_cwnd": "restore_cwnd",
}
TEXTS = ("mrc.from", "mrc.to", "mrc.path", "mrc.sack.received")
PARTS = ("mrc.ev.plane", "mrc.ev.uplink", "mrc.of_ev.plane", "mrc.of_ev.uplink", "mrc.psn", "mrc.nack.psn", "mrc.icrc")
FIELDS = [*NUMBERS, *FLAGS, *TEXTS, *PARTS]
NOBODY = 65534


def tshark(capture: Path, *arguments: str) -> str:
    """Its output, with our dissector and nobody's settings."""
    if shutil.which("tshark") is None:
        pytest.fail("tshark is not installed: run `make setup`")
    with readable_by_all() as home:
        script = shutil.copy(dissector_path(), home)
        done = run_as_nobody(home, "-X", f"lua_script:{script}", "-r", "-", *arguments, stdin=capture)
    assert done.returncode == 0, done.stderr
    assert "lua" not in done.stderr.lower(), done.stderr
    return done.stdout


@contextmanager
def readable_by_all() -> Iterator[Path]:
    """A folder for what tshark opens: those of pytest are for their user alone, and so is a checkout below /root."""
    with tempfile.TemporaryDirectory(prefix="tshark-") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def run_as_nobody(
    home: Path, *arguments: str, stdin: Path = Path(os.devnull), stdout: IO[str] | int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """tshark as an ordinary user, who has Lua: root has none since Wireshark 4.4."""
    other: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    with stdin.open("rb") as file:
        return subprocess.run(
            ["tshark", *arguments],
            stdin=file,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd="/",
            timeout=HANGS_S,
            **other,
        )


def dissected(capture: Path) -> list[dict[str, Any]]:
    """One dict of comparable values a packet, from tshark."""
    return read_fields(fields_text(capture))


def fields_text(capture: Path) -> str:
    """What tshark prints of FIELDS, a line a packet."""
    asked = [word for field in FIELDS for word in ("-e", field)]
    return tshark(capture, "-Y", "mrc.opcode", "-T", "fields", "-E", "separator=|", *asked)


def read_fields(text: str) -> list[dict[str, Any]]:
    """The rows of `fields_text`, also of another version of tshark."""
    return [_values(dict(zip(FIELDS, line.split("|"), strict=True))) for line in text.splitlines()]


def parsed(capture: Path) -> list[dict[str, Any]]:
    """The same from hosts/mrc/wire.py."""
    frames = [frame for frame in map(unwrap, CaptureReader(capture)) if isinstance(frame, Frame)]
    return [_expected(packet) for packet in map(parse, frames) if isinstance(packet, Packet)]


def _values(row: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {key: int(row[field], 0) for field, key in NUMBERS.items() if row[field]}
    found |= {key: row[field] in ("1", "True") for field, key in FLAGS.items() if row[field]}
    found |= {field: row[field] for field in TEXTS if row[field]}
    found["ev"] = f"{row['mrc.ev.plane']}/{row['mrc.ev.uplink']}"
    if row["mrc.of_ev.plane"]:
        found["of_ev"] = f"{row['mrc.of_ev.plane']}/{row['mrc.of_ev.uplink']}"
    if "cack" not in found and "request_id" not in found and "probe_id" not in found:
        found["psn"] = int(row["mrc.nack.psn"] or row["mrc.psn"])
    return found


def _expected(packet: Packet) -> dict[str, Any]:
    values = dict(packet.values, opcode=packet.opcode, ev=packet.ev)
    if "reason" in values:
        values["reason"] = {name: code for code, name in NACK_REASONS.items()}[values["reason"]]
    if "bitmap" in values:
        values["bitmap"] = int(values["bitmap"], 0)
    shared = {key for key in (*NUMBERS.values(), *FLAGS.values(), "ev", "of_ev", "psn")}
    found = {key: value for key, value in values.items() if key in shared}
    # Every packet has these bits in its BTH; in most they are 0 and wire.py does not name them.
    found = {"rtx": False, "ack_request": False} | found
    texts = {
        "mrc.from": address_name(packet.frame.source),
        "mrc.to": address_name(packet.frame.destination),
        "mrc.path": " ".join(still_to_go(packet.frame.outer)),
        "mrc.sack.received": runs_text(values["received"]) if values.get("received") else "",
    }
    return found | {key: text for key, text in texts.items() if text}
