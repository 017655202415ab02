"""In place of docker: `fake_engine.py FOLDER WORDS...` notes each call; its containers are our own endpoint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

IMAGE = "mine:1"


def main(folder: Path, words: list[str]) -> int:
    """As docker does; the image IMAGE alone is there."""
    with (folder / "calls").open("a") as calls:
        calls.write(" ".join(words) + "\n")
    if words[:2] == ["image", "inspect"] and words[2] != IMAGE:
        sys.stderr.write("Error: No such image\n")
        return 1
    if words[0] == "run":
        return subprocess.run([sys.executable, "-m", "mrc_testbed.hosts.contract"], check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
