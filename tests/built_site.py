"""The documentation as `make docs` builds it, for tests that look at its pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workers import made_once, shared_folder

ROOT = Path(__file__).parents[1]


def built_site(factory: pytest.TempPathFactory) -> Path:
    """All pages, built once for all workers. A broken link or anchor, or a page outside the navigation, is an error."""
    folder = shared_folder(factory, "site")
    with made_once(folder) as wanted:
        if wanted:
            _build(folder)
    return folder


def _build(folder: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n`tools/setup-docs` installs what builds the site"
