"""Commands as an ordinary user of this machine, who owns nothing but one folder."""

from __future__ import annotations

import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534
_LOOKED_INTO = (Path(sys.prefix), Path(sys.base_prefix).resolve(), Path(__file__).parents[2])
"""What runs the program."""


@contextmanager
def folder_of_nobody() -> Iterator[Path]:
    """A folder of that user's, under a path that everybody may look into."""
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, NOBODY, NOBODY)
        yield Path(name)


def as_nobody(folder: Path) -> list[str]:
    """How a command begins that this user runs at home in `folder`.

    Python or this checkout may lie in the home of root, which is closed to others: in a mount namespace of the command
    that home is then open, and has nothing but them.
    """
    held = folder / "held"
    held.mkdir(exist_ok=True)
    lines = [line for home in _closed_folders() for line in _opened(home, held)]
    user = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups env HOME={folder}"
    return ["unshare", "--mount", "sh", "-ec", "; ".join([*lines, f'exec {user} "$0" "$@"'])]


def _closed_folders() -> list[Path]:
    above = {parent for path in _LOOKED_INTO for parent in path.parents}
    return sorted(folder for folder in above if not folder.stat().st_mode & stat.S_IXOTH)[:1]


def _opened(home: Path, held: Path) -> Iterator[str]:
    yield f"mount --bind {shlex.quote(str(home))} {held}"
    yield f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(home))}"
    for name in sorted({path.relative_to(home).parts[0] for path in _LOOKED_INTO if home in path.parents}):
        place = shlex.quote(str(home / name))
        yield f"mkdir {place}"
        yield f"mount --bind {held}/{shlex.quote(name)} {place}"
