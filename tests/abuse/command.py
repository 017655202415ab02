"""The command as a process of its own, and what none of its outputs may say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.hangs import HANGS_S

COMMAND = str(Path(sys.executable).with_name("mrc-testbed"))
KNOWN = {0, 1, 2, 3, 4, 130}
"""Exit statuses that have a meaning (docs/ci.md)."""


def command(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [COMMAND, *words], capture_output=True, text=True, errors="replace", timeout=HANGS_S, check=False, **options
    )


def assert_in_order(told: str) -> None:
    """Nothing that a mistake of ours would say."""
    assert "Traceback" not in told, told
    assert "internal error" not in told, told
