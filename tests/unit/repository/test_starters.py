"""Programs of others are started in one place. What else starts a process is listed here, with what it starts."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
STARTS = re.compile(
    r"\b(subprocess\.(?:Popen\(|run\(|call\(|check_)|os\.(?:fork|exec[lv]|posix_spawn|system|popen)|ProcessPoolExecutor\("
    r"|create_subprocess|get_context\()"
)
OF_OTHERS = {"testbed/launcher/start.py", "hosts/keeper.py", "hosts/launch.py"}
"""The one that starts them, who keeps one, and what becomes one on a host."""
OWN = {
    "hosts/forker.py": "endpoint daemons",
    "testbed/app/ahead.py": "runs",
    "testbed/app/hunt/workers.py": "tries",
    "testbed/app/incident_set.py": "cases",
    "testbed/app/lesson.py": "the command itself",
    "testbed/fabric/bgp/daemons.py": "FRR",
    "testbed/fabric/compiled.py": "the compiler",
    "testbed/fabric/forker.py": "the process that forks daemons",
    "testbed/fabric/batch.py": "ip, tc and nft",
    "testbed/fabric/bgp/messages.py": "a capture of FRR's messages",
    "testbed/fabric/delay.py": "the delay in NFQUEUE",
    "testbed/fabric/node_shell.py": "a shell of each node",
    "testbed/fabric/prompt.py": "what its user types",
    "testbed/fabric/sandbox.py": "the run itself",
    "testbed/fabric/trials.py": "what tries the kernel",
    "testbed/sweep/cell.py": "a run",
    "testbed/sweep/hunter.py": "tries",
    "testbed/sweep/keys.py": "openssl",
    "testbed/web/server_process.py": "the server of the live page",
}


def test_who_starts_processes_is_known() -> None:
    found = {
        str(path.relative_to(ROOT))
        for room in ("hosts", "testbed", "src")
        for path in (ROOT / room).rglob("*.py")
        if "libmrc" not in path.parts and STARTS.search(path.read_text(encoding="utf-8"))
    }
    assert found == OF_OTHERS | OWN.keys()
