"""`show` on a run in virtual time: counts by uSID agree with those of ports, to the packet; a reboot begins again."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from mrc_testbed.testbed.cli import app
from mrc_testbed.testbed.rundir.sizes import SIZES
from mrc_testbed.testbed.scenario import load_scenario_text
from tests.generated.oracle import wrong_with

SCENARIO = """
name: counted
world: virtual
fabric: {planes: 1, t0_groups: 2, t1: 2, hosts_per_t0: 4, port_rate: 25mbit, rtt: 20ms}
workload: [{incast: {to: h0, from: [h4, h5, h6, h7], for: 1500ms}}]
faults:
  - {at: 400ms, entry-missing: "p0-t0-1:p0-t1-1", direction: up, for: 300ms}
  - {at: 600ms, switch-reboot: p0-t1-0, boot: 300ms}
"""
REBOOTED, MISSED = "p0-t1-0", "p0-t0-1"


def ask(folder: Path, switch: str, view: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(app, ["show", str(folder), switch, *view.split(), "-j"])
    assert result.exit_code == 0, result.output
    rows: list[dict[str, object]] = json.loads(result.output)
    return rows


def arrived(counts: dict[str, dict[str, int]]) -> int:
    """What came in at the ports of a switch and no rule lost."""
    kinds = ("data", "trimmed", "control", "other")
    return sum(port[f"in_{kind}"] - port[f"in_{kind}_dropped"] for port in counts.values() for kind in kinds)


def test_views_of_a_finished_run(tmp_path: Path) -> None:
    assert wrong_with(load_scenario_text(SCENARIO), tmp_path) == []
    folder = next(tmp_path.glob("2*-counted"))
    counters = json.loads((folder / "counters.json").read_text())
    for switch in ("p0-t0-0", "p0-t0-1", "p0-t1-1"):
        taken, strange = ask(folder, switch, "srv6 stats")
        assert taken["Packets"] == arrived(counters["ports"][switch]) > 0
        assert (strange["Packets"] > 0) == (switch == MISSED)  # type: ignore[operator]
    (after, _) = ask(folder, REBOOTED, "srv6 stats")
    assert 0 < after["Packets"] < arrived(counters["ports"][REBOOTED])  # type: ignore[operator]
    down0 = ask(folder, "p0-t0-0", "interfaces counters trim")[0]
    assert down0["TRIM_PKTS"] == counters["ports"]["p0-t0-0"]["down0"]["out_trimmed"] > 0
    longest = {row["Port"]: row["Bytes"] for row in ask(folder, "p0-t0-0", "queue watermark")}
    bdp = 25_000_000 * 20 // 8000
    assert 1.4 * bdp < longest["down0"] < 1.8 * bdp  # type: ignore[operator]
    assert longest["down1"] < bdp / 4  # type: ignore[operator]


def test_a_run_from_before_uSIDs_were_counted(tmp_path: Path) -> None:  # noqa: N802
    assert wrong_with(load_scenario_text(SCENARIO), tmp_path) == []
    folder = next(tmp_path.glob("2*-counted"))
    counters = json.loads((folder / "counters.json").read_text())
    del counters["sids"], counters["no_sid"], counters["ports"]["p0-t0-0"]["down0"]["most_queued_bytes"]
    (folder / "counters.json").write_text(json.dumps(counters))
    (folder / SIZES).unlink()  # such a run did not say how long its files are
    assert [row["Packets"] for row in ask(folder, "p0-t0-0", "srv6 stats")] == ["N/A", "N/A"]
    assert ask(folder, "p0-t0-0", "queue watermark")[0]["Bytes"] == "N/A"
    (folder / "counters.json").unlink()
    assert ask(folder, "p0-t0-0", "queue counters")[0]["Counter/pkts"] == "N/A"
    assert ask(folder, "p0-t0-0", "interfaces counters")[0]["RX_OK"] != "N/A"
