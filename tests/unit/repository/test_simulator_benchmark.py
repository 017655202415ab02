"""The benchmark beside another simulator, with a stand-in that checks what it is given."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.simulator import PROGRAM, Case, case_of, here, main, program_below
from mrc_testbed.testbed.errors import UsageError

STAND_IN = """#!{python}
import re, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
topology = open(words["-topo"]).read().split()
assert topology[:6] == ["Nodes", "16", "Tiers", "2", "Podsize", "16"], topology
assert topology.count("Radix_Down") == 2 and topology.count("Radix_Up") == 1
head, count, *flows = open(words["-tm"]).read().splitlines()
assert (head, count) == ("Nodes 16", "Connections 16")
parts = [re.fullmatch(r"(\\d+)->(\\d+) id \\d+ start 0 size 65536", flow).groups() for flow in flows]
assert [(int(a) + 4) % 16 for a, _ in parts] == [int(b) for _, b in parts]
assert (words["-linkspeed"], words["-mtu"], words["-paths"]) == ("100000", "4160", "4")
assert float(words["-end"]) > 100
print("Nodes 16")
for a, b in parts[:-1]:
    print(f"Flow Uec_{{a}}_{{b}} flowId 7 Uec_{{a}}_{{b}} finished at 20.5 total packets 16 RTS 0 total bytes 65536")
print("Done")
print("New: 256 Rtx: 2 RTS: 0 Bounced: 0 ACKs: 99 NACKs: 0 Pulls: 0 sleek_pkts: 0")
"""


def build(folder: Path, text: str) -> Path:
    """A program as a user may have it below a folder."""
    program = folder / "htsim" / "build" / PROGRAM
    program.parent.mkdir(parents=True)
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return program


def test_the_same_flows_run_in_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(tmp_path, STAND_IN.format(python=sys.executable))
    assert main([str(tmp_path), "--hosts", "16", "--kib", "64"]) == 0
    head, other, ours = capsys.readouterr().out.splitlines()
    assert head.endswith("FCT / ideal")
    assert other.split()[:4] == ["16", PROGRAM, "258", "2"]
    assert other.endswith("  1 flows did not end")
    assert ours.split()[:4] == ["16", "here", "272", "0"]  # an empty one ends each flow
    least, median, most = map(float, ours.split()[-3:])
    assert 1 <= least <= median <= most < 1.5
    least, _, most = map(float, other.split()[8:11])
    assert least == most == pytest.approx(20_500 / Case(16, 65536).other_ideal_ns, abs=1e-3)


def test_the_ideal_is_packets_one_behind_the_other_and_an_acknowledgement() -> None:
    wire_ns, ack_ns = 4160 * 8 / 100, 64 * 8 / 100
    assert Case(16, 65536).other_ideal_ns == pytest.approx((16 + 3) * wire_ns + 8_000 + 4 * ack_ns)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\necho no such file >&2; exit 3\n", "exit status 3: no such file"),
        ("#!/bin/sh\necho Done\n", f"{PROGRAM} printed no count of packets or no end of a flow: Done"),
        ("no program", "Exec format error"),
    ],
)
def test_a_program_that_fails_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    build(tmp_path, text)
    assert main([str(tmp_path), "--hosts", "16"]) == 3
    assert said in capsys.readouterr().err


def test_without_the_program_one_line_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert (
        told == f"simulator: {tmp_path}: no program {PROGRAM} there; build uet-htsim, then name it or a folder above it"
    )
    program = build(tmp_path, "")
    assert program_below(program) == program_below(tmp_path) == program


@pytest.mark.parametrize("word", ["", "2", "12", "x", "-8"])
def test_other_numbers_of_hosts_are_refused(word: str) -> None:
    with pytest.raises(UsageError, match="powers of two"):
        case_of(word, 64)


@pytest.mark.parametrize("hosts", [4, 8, 16, 32])
def test_every_size_runs_here(hosts: int) -> None:
    found = here(case_of(str(hosts), 16))
    assert (found.packets, found.again, len(found.ratios)) == (5 * hosts, 0, hosts)
