"""Which code runs here. Results of other code are not comparable."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from mrc_testbed.testbed.version import NAME, commit


def code_version() -> dict[str, Any]:
    """Version and commit."""
    return {"version": metadata.version(NAME), "commit": commit()}


def version_words(found: Any) -> str:
    """`0.2.0 (1a2b3c4)`."""
    known = found if isinstance(found, dict) else {}
    return f"{known.get('version', 'unknown')} ({(known.get('commit') or 'unknown')[:7]})"
