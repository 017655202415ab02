"""A folder that somebody sent, with a trap for every module and tool that a command of ours may want."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.hangs import HANGS_S

MAIN = str(Path(sys.executable).with_name("mrc-testbed"))
OURS = ("mrc_testbed", "hosts", "testbed", "topos", "scenarios", "sitecustomize", "usercustomize", "conftest")
TRAP = """\
open({mark!r}, "w")
raise SystemExit("a trap was run")
"""
SCENARIO = """\
name: t
world: virtual
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 1, port_rate: 10mbit, rtt: 20ms}
workload:
  - train: {steps: 3, compute: 10ms, allreduce: 64KiB}
faults:
  - at: 5ms
    for: 20ms
    chaos: {port-flap: {times: 50/s, period: 5ms, of: "h*:p0-t0-*"}}
capture:
  - {links: "h0:p0-t0-0", around: run}
expect: [qp_errors == 0]
"""


class Trapped:
    """A folder with a trap for every module and tool that a command of ours may want."""

    def __init__(self, place: Path) -> None:
        self.folder, self._marks = place / "sent", place / "marks"
        self._state = place / "state"
        for folder in (self.folder, self._marks):
            folder.mkdir()
        for name in {*sys.stdlib_module_names, *packages_distributions(), *OURS}:
            if name.isidentifier():
                self._trap(self.folder / f"{name}.py", TRAP, name)
        for tool in ("ip", "tc", "unshare", "openssl", "mnexec", "clang", "bash", "sh", "python3"):
            path = self.folder / tool
            self._trap(path, "#!/bin/sh\n: >{mark}\nexit 1\n", tool)
            path.chmod(0o755)
        (self.folder / "t.yaml").write_text(SCENARIO)

    def _trap(self, path: Path, text: str, name: str) -> None:
        path.write_text(text.format(mark=str(self._marks / name)))

    def without(self, *names: str) -> Trapped:
        for name in names:
            (self.folder / f"{name}.py").unlink(missing_ok=True)
        return self

    def run(self, *command: str, status: int | None = 0) -> str:
        """In the folder, to its end. What it printed. `status` None: whatever it is."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env |= {"XDG_STATE_HOME": str(self._state), "NO_COLOR": "1"}
        done = subprocess.run(
            command, cwd=self.folder, env=env, capture_output=True, text=True, timeout=HANGS_S, check=False
        )
        trapped = sorted(path.name for path in self._marks.iterdir())
        assert not trapped, f"of the folder was run: {', '.join(trapped)}"
        assert status in (None, done.returncode), done.stdout + done.stderr
        return done.stdout
