"""Another user of the machine, whose folders root meets: `nobody`, who exchanges what is theirs as fast as they can."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
PYTHON = "/usr/bin/python3"
"""Which that user may run, wherever this one's Python lies."""
needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not Path(PYTHON).exists(), reason="root, and another user"
)
_EXCHANGES = """
import ctypes, os, sys, time
libc, AT_FDCWD, RENAME_EXCHANGE = ctypes.CDLL(None, use_errno=True), -100, 2
pairs = list(zip(sys.argv[1::2], sys.argv[2::2]))
for path, target in pairs:
    if not os.path.lexists(path + ".link"):
        os.symlink(target, path + ".link")
print("ready", flush=True)
while True:
    for path, _ in pairs:
        libc.renameat2(AT_FDCWD, os.fsencode(path), AT_FDCWD, os.fsencode(path + ".link"), RENAME_EXCHANGE)
    time.sleep(0.001)
"""


@contextmanager
def folder_of_nobody() -> Iterator[Path]:
    """A folder of that user's, on a way that everybody may go."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chown(name, NOBODY, NOBODY)
        yield Path(name)


@contextmanager
def by_nobody(program: str, *arguments: object) -> Iterator[str]:
    """A Python program of theirs, and the first line that it says."""
    user = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
    command = [*user, PYTHON, "-c", program, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout
    with process:
        try:
            yield process.stdout.readline()
        finally:
            os.killpg(process.pid, 9)


@contextmanager
def exchanging(*pairs: tuple[Path, Path]) -> Iterator[None]:
    """Meanwhile they exchange each path, every millisecond, with a link to another one, or with what is there under the
    link's name, `NAME.link`."""
    with by_nobody(_EXCHANGES, *(path for pair in pairs for path in pair)):
        yield
