"""Any input below a MiB is read or refused with little memory and time, whatever it could become."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.interchange.growing import GROWING, Files

MOST_MIB = 300
MOST_CPU_S = 20
"""Four times what is promised (docs/commands.md), so that a busy machine fails no test; what grows by squares took
from 27 s to minutes."""
COMMAND = """
import sys
from pathlib import Path
from mrc_testbed.__main__ import main
try:
    main()
finally:
    peak = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
    print(peak, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory in /proc")
@pytest.mark.nightly(keep=14)
@pytest.mark.parametrize("files", GROWING)
def test_little_input_takes_little(tmp_path: Path, files: Callable[[], Files]) -> None:
    made = files()
    assert sum(map(len, made.values())) < 1 << 20
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    ended = subprocess.run(
        [sys.executable, "-P", "-c", COMMAND, "import", min(made), "-o", "made.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S)),
    )
    *said, peak = ended.stderr.splitlines()
    assert ended.returncode in (0, 2), said
    assert int(peak.split()[1]) < MOST_MIB << 10
    assert ended.returncode == 0 or sorted(made) == sorted(each.name for each in tmp_path.iterdir())
