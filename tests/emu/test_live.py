"""A run on a real terminal: it is watched, interrupted, and leaves a terminal as others found it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import termios
from pathlib import Path

from tests.emu.runs import COMMAND, SMALL, wait_for
from tests.screens import FakeTerminal

FAULT = "faults: [{at: 500ms, switch-reboot: p0-t1-1, boot: 60s, name: reboot}]\n"


def test_a_run_is_watched_on_a_terminal_and_ctrl_c_leaves_the_summary_alone(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SMALL.replace("STEPS", "1000") + FAULT, encoding="utf-8")
    terminal = FakeTerminal(100, 30)
    terminal.resize(100, 30)
    run = subprocess.Popen(
        [*COMMAND, "run", str(scenario), "--out", str(tmp_path / "results")],
        stdin=terminal.file,
        stdout=terminal.file,
        stderr=terminal.file,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    try:
        wait_for(lambda: "reboot: switch-reboot p0-t1-1" in "\n".join(terminal.rows), "the fault", seconds=30)
        wait_for(lambda: any(row.endswith("retired by 2 hosts") for row in terminal.rows), "the EVs", seconds=10)
        (row,) = (row for row in terminal.rows if row.startswith("t1-1 "))
        assert row.split()[1].startswith("✕✕✕"), "both links and the switch between them"
        assert not terminal.echoes
        terminal.type(b"\x03")
        wait_for(lambda: terminal.read() == b"" and run.poll() is not None, "the end of the run", seconds=30)
    finally:
        run.kill()
    assert run.returncode == 130
    assert terminal.echoes
    left = [*terminal.above, *terminal.rows]
    assert any(row.startswith("INCONCLUSIVE") for row in left)
    assert not any(row.startswith(("t1-1 ", "ports ", "▁█ load")) for row in left)
    terminal.close()
