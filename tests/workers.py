"""What all workers of one test run share: a folder, and what is made in it once."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def shared_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder of this name, the same one for all workers."""
    own = factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def made_once(path: Path) -> Iterator[bool]:
    """Whether `path` has still to be made, which the block does while other workers wait. If it fails, the next worker
    tries again."""
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = path.with_name(f"{path.name}.made")
        yield not done.exists()
        done.touch()
