"""Faults asked for in a browser, on a real fabric: done by the same code, recorded, judged, and run again."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed.checks.record import load_record
from mrc_testbed.testbed.checks.windows import outages
from tests.emu.runs import COMMAND, Run, wait_for

LINK, SWITCH = "p0-t0-0:p0-t1-1", "p1-t1-0"


class Browser:
    """What the page does, without the page."""

    def __init__(self, run: Run) -> None:
        assert run.process.stderr
        found = (re.search(r"http://127\.0\.0\.1:(\d+)/#(\S+)", line) for line in run.process.stderr)
        port, self._token = next(each.groups() for each in found if each)
        self.port = int(port)

    def post(self, **request: Any) -> tuple[bool, str]:
        """Whether it was done, and what was said of it."""
        headers = {"Content-Type": "application/json", "X-Token": self._token}
        status, body = self._ask("POST", "/do", json.dumps(request), headers)
        assert status == 200, body
        answer = json.loads(body)
        return answer["ok"], answer["text"]

    def _ask(self, method: str, path: str, body: str | None = None, headers: Any = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def schedule(folder: Path) -> list[tuple[str, str, int, int]]:
    return [(one.fault, one.title, one.begin_ns, one.end_ns) for one in load_record(folder).occurrences]


@pytest.mark.nightly
def test_faults_by_hand_are_recorded_and_a_replay_does_them_again(tmp_path: Path) -> None:
    run = Run(tmp_path, steps=40, options=("--web", "--interactive"))
    browser = Browser(run)
    run.wait_until_step(2)
    assert browser.post(do="cut", target=LINK, for_s=1) == (True, f"hand-1: link-down {LINK} for 1s")
    twice = (False, f"{LINK}: already affected by hand-1 (link-down {LINK})")
    assert browser.post(do="cut", target=LINK, for_s=1) == twice
    assert browser.post(do="reboot", target=SWITCH)[0]
    wait_for(lambda: any(line["op"] == "read-back" for line in run.history()), "the cut to heal")
    assert browser.post(do="mend", target=SWITCH) == (True, f"mended hand-2: switch-reboot {SWITCH}")
    run.finish()
    run.assert_passed_or_machine_was_busy()
    by_hand = [line for line in run.history() if line.get("by") == "hand"]
    assert {line["fault"] for line in by_hand} == {"hand-1", "hand-2"}
    assert not [line for line in by_hand if line["type"] == "fail"]
    planned = schedule(run.folder)
    assert [row[:2] for row in planned] == [("hand-1", f"link-down {LINK}"), ("hand-2", f"switch-reboot {SWITCH}")]

    again = tmp_path / "again"
    ended = subprocess.run(
        [*COMMAND, "replay", str(run.folder), "--out", str(again)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode in (0, 3), ended.stdout + ended.stderr
    folder = again / "latest"
    assert schedule(folder) == planned
    record = load_record(folder)
    done = {one.fault: one.invoked_ns - (record.start_ns or 0) for one in outages(record)}
    assert done.keys() == {"hand-1", "hand-2"}
    for name, _, begin_ns, _ in planned:
        assert 0 <= done[name] - begin_ns < 250_000_000
