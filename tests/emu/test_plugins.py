"""Runs with plugins on the kernel: they pass, their folder is enough to run again, and what raises is never a pass."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.documented import undocumented
from tests.emu.runs import COMMAND, Run
from tests.unit.scenario.test_plugins_transport import OWN_PACKETS
from tests.unit.scenario.test_plugins_transport import SCENARIO as SMALL

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SCENARIO = """
name: plugged
plugins: [my_cc.py, random_spray.py, gather.py, step_spread.py, mtu_fault.py]
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 12.5mbit, rtt: 20ms}
endpoint: {congestion_control: fixed-rate, ev_selection: random-spray}
workload:
  - train: {steps: STEPS, step: [{compute: 20ms}, {gather: {size: 100KB, root: 1}}, {allreduce: {size: 64KiB}}]}
faults:
  - {at: 100ms, link-mtu: p0-t0-0:p0-t1-0, mtu: 2000, for: 100ms}
expect:
  - qp_errors == 0
  - bytes_wrong == 0
  - step_spread.max <= 10s
"""

ELSEWHERE = """def hops(self, loaded_in=__import__("os").getpid()):
        1 // (__import__("os").getpid() == loaded_in)"""
"""Raises in the run alone, which is a process of its own."""


def started(folder: Path, **changes: tuple[str, str]) -> Run:
    """A run beside copies of the examples; `changes`: what is replaced in the file of that name."""
    for name in ("my_cc", "random_spray", "gather", "step_spread", "mtu_fault"):
        source = (EXAMPLES / f"{name}.py").read_text()
        old, new = changes.get(name, ("", ""))
        assert old in source
        (folder / f"{name}.py").write_text(source.replace(old, new, 1) if old else source)
    return Run(folder, scenario=SCENARIO)


def test_all_kinds_of_plugins_run_and_run_again_from_the_folder_alone(tmp_path: Path) -> None:
    run = started(tmp_path)
    run.finish()
    run.assert_passed_or_machine_was_busy()
    assert undocumented(run.folder) == []
    kept = run.folder / "plugins"
    assert sorted(path.name for path in kept.iterdir()) == [
        "gather.py",
        "mtu_fault.py",
        "my_cc.py",
        "random_spray.py",
        "step_spread.py",
    ]
    assert "congestion control fixed-rate; ev_selection random-spray; plugins: my_cc.py (sha256 " in " ".join(
        run.output.split()
    )
    folder = shutil.copytree(run.folder, tmp_path / "elsewhere" / "run")
    (tmp_path / "my_cc.py").write_text("1 / 0")
    again = subprocess.run(
        [*COMMAND, "replay", str(folder), "--out", str(tmp_path / "again"), "-q"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert again.returncode in (0, 3), again.stderr
    assert "5 steps" in again.stdout
    assert f"{tmp_path / 'my_cc.py'} has changed since this run" in again.stderr


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("my_cc", "now_ns):\n        self.begin()", "now_ns):\n        1 / 0", "my_cc.py:32: ZeroDivisionError"),
        ("random_spray", "        path = self.drawn", "        raise KeyError(7)", "random_spray.py:23: KeyError: 7"),
        ("random_spray", "self.drawn.plane if paths", "7 if paths", "plugin random-spray: "),
        ("mtu_fault", "        mtu = occ", "        mtu = 1 // 0 + occ", "plugin mtu_fault.py:19: ZeroDivisionError"),
        ("gather", "def hops(self):", ELSEWHERE, "plugin gather.py:20: ZeroDivisionError"),
    ],
)
@pytest.mark.nightly(keep=1)
def test_a_plugin_that_raises_ends_the_run_which_does_not_pass(
    tmp_path: Path, name: str, old: str, new: str, says: str
) -> None:
    run = started(tmp_path, **{name: (old, new)})
    assert run.finish() == 3
    assert run.verdict["verdict"] == "inconclusive"
    assert says in run.history()[-1]["error"]
    assert says in " ".join(run.output.split())
    assert "internal error" not in run.output + run.errors


@pytest.mark.parametrize("says", [True, False])
def test_the_port_program_knows_the_data_of_a_transport_that_says_them(tmp_path: Path, says: bool) -> None:
    data = "DataPackets({0x40 + code: 32 for code in range(12)}, by_opcode=True)" if says else 'TRANSPORTS["roce"].data'
    scenario = SMALL.format(transport="other").replace("world: virtual\n", "")
    (tmp_path / "mine.py").write_text(OWN_PACKETS.replace("DATA)", f"{data})"), encoding="utf-8")
    run = Run(tmp_path, scenario=scenario)
    run.finish()
    summary = " ".join((run.folder / "summary.txt").read_text(encoding="utf-8").split())
    if says:
        run.assert_passed_or_machine_was_busy()
        assert re.search(r" packets ([1-9]\d*) data sent: \1 arrived whole, 0 dropped ", summary), summary
    else:
        assert run.verdict["verdict"] == "inconclusive"
        assert re.search(r"NIC of h0: (\d+) data packets lost; NIC of h0: \1 high class packets too many", summary)
