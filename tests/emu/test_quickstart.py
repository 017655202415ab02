"""The scenario a newcomer runs first, as it is shipped."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.emu.runs import COMMAND

pytestmark = pytest.mark.alone

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"
TIMED = ("step_time", "recovery")
"""Expectations that a busy machine can break; all others hold on any machine."""


@pytest.mark.timeout(180)
def test_the_quickstart_passes_or_says_that_the_machine_did_not_keep_time(tmp_path: Path) -> None:
    after = "expect.7=evs_retired of each host == 0 after t1-reboot heals + 10 rtt"
    command = [*COMMAND, "run", str(QUICKSTART), "--out", str(tmp_path), "--set", after]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    verdict_file = tmp_path / "latest" / "verdict.json"
    verdict = json.loads(verdict_file.read_text(encoding="utf-8"))
    held = {check["name"]: check.get("unbelieved") or check["status"] for check in verdict["checks"]}
    kept_time = all(figure["ok"] for figure in verdict["fidelity"]["figures"])
    wanted = held if kept_time else {name: status for name, status in held.items() if not name.startswith(TIMED)}
    assert set(wanted.values()) == {"pass"}, ran.stdout
    assert ran.returncode == (0 if kept_time else 3)
    assert len(held) >= 12
    occurrences = json.loads((verdict_file.parent / "recovery.json").read_text(encoding="utf-8"))["cycles"]
    assert [(one["fault"], one["cycle"]) for one in occurrences if one["kind"] == "switch-reboot"] == [("t1-reboot", 0)]
    assert len(occurrences) == 7
    for one in occurrences:
        retired, lost = one["evs_retired"], one["lost"]
        if lost["packets"] is None:
            assert "between" in lost["why"] or "at least" in lost["why"], "its counts reach into another fault"
        else:
            assert lost["packets"] >= retired["number"], "an EV is retired by a packet that was lost"
            assert lost["qps"] == 8, "each host sends on one QP"
        if retired["number"]:
            assert 0 < retired["p50"]["ms"] <= retired["p100"]["ms"]
            assert one["after_heal"]["evs_restored"]["number"] <= retired["number"]
