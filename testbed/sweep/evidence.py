"""The evidence of a run as one packed file, on its way from a worker into the folder of the sweep.

It comes from another machine: only plain files with plain names are unpacked, into no folder but its own.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from mrc_testbed.testbed.errors import RunError
from mrc_testbed.testbed.whole_files import open_new

CELL_FILE = "cell.json"
SUMMARY, EVIDENCE, ALL = "summary", "evidence", "all"
FETCHES = (SUMMARY, EVIDENCE, ALL)
"""How much of a run folder is brought back."""
_SUMMARY = ("scenario.yaml", "summary.txt", "verdict.json", "environment.json")
_CAPTURES = "pcap"
_DEEPEST = 2
_LEVEL = 3
"""Of gzip: twice as fast as its usual one for a tenth more."""


def pack(folder: Path | None, fetch: str) -> bytes:
    """What is wanted of a run folder; nothing of a run that has none."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=_LEVEL) as tar:
        for path in sorted(folder.rglob("*")) if folder else ():
            name = path.relative_to(folder).as_posix() if folder else ""
            if path.is_file() and not path.is_symlink() and _wanted(name, fetch):
                tar.add(path, name, recursive=False)
    return out.getvalue()


def _wanted(name: str, fetch: str) -> bool:
    if fetch == SUMMARY:
        return name in _SUMMARY
    return name != CELL_FILE and (fetch == ALL or not name.startswith(f"{_CAPTURES}/"))


def unpack(packed: bytes, folder: Path) -> None:
    """Into an empty folder. Raises RunError for what is no evidence."""
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as tar:
            for member in tar:
                _write(tar, member, folder)
    except (tarfile.TarError, EOFError, ValueError, zlib.error, gzip.BadGzipFile) as error:
        raise RunError(f"a worker sent evidence that cannot be unpacked: {error}") from None


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    place = PurePosixPath(member.name)
    strange = not member.isreg() or place.is_absolute() or ".." in place.parts or len(place.parts) > _DEEPEST
    content = None if strange or "\\" in member.name else tar.extractfile(member)
    if content is None:
        raise RunError(f"a worker sent {member.name!r} as evidence, which is no file of a run folder")
    path = folder / place
    path.parent.mkdir(exist_ok=True)
    with open_new(path) as file:
        file.write(content.read())
