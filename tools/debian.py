"""What test-distros and test-stock share: where Debian is, a cache, and what the output of a command came to."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

SUITES = ("bookworm", "trixie")
FALLBACK_MIRROR = "http://deb.debian.org/debian"


def fail(tool: str, why: str) -> NoReturn:
    print(f"{tool}: {why}", file=sys.stderr)
    sys.exit(4)


def say(line: str) -> None:
    print(line, flush=True)


def machines_mirror(apt: Path = Path("/etc/apt")) -> str:
    """The first Debian in the machine's own sources, so that a mirror near by or inside a company is used."""
    sources = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    for path in sources:
        if path.suffix in (".list", ".sources") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            if found := re.search(r"^(?:deb\s+(?:\[[^\]]*\]\s*)?|URIs:\s*)(\S+/debian)/?(?:\s|$)", text, re.MULTILINE):
                return found[1]
    return FALLBACK_MIRROR


@contextlib.contextmanager
def cache(tool: str, name: str) -> Iterator[Path]:
    """A folder of the user's cache, this run's alone. What a killed run left in it is removed."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mrc-testbed" / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fail(tool, f"another run works in {folder}")
        for left in folder.glob("*.tmp"):
            shutil.rmtree(left)
        yield folder


def closing_lines(output: str) -> str:
    """What a command's output came to: pytest's last lines, or the verdict of a run, or just its last line."""
    pytest = re.findall(r"^=* ?(\d+ \w+.* in [\d.]+s.*?) ?=*$", output, re.MULTILINE)
    verdicts = re.findall(r"^(?:PASS|FAIL|INCONCLUSIVE)  .*$", output, re.MULTILINE)
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("make: ")]
    return "; ".join(pytest or verdicts[-1:] or lines[-1:])
