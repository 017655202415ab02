"""Which mrc-testbed this is: version, commit, place. Also loaded by hatch_build.py, so it imports nothing of ours.

The commit of a checkout is read from `.git` without the git program: a bare machine has none, and under sudo it refuses
a folder of another owner.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from importlib import metadata
from pathlib import Path

NAME = "mrc-testbed"
PLACE = Path(__file__).resolve().parents[1]
"""What holds `testbed`: the checkout, or the folder of installed packages."""
COMMIT_FILE = Path("testbed", "commit.txt")
"""In a wheel: what it was built from."""
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LINKS = 5
"""How far a symbolic ref may lead to another, as in git itself."""


def version_line() -> str:
    """Such as `mrc-testbed 0.1.0 (commit 1a2b3c4, /home/me/mrc-testbed)`."""
    known = commit()
    return f"{NAME} {metadata.version(NAME)} (commit {known[:7] if known else 'unknown'}, {PLACE})"


def commit(place: Path = PLACE) -> str | None:
    """The whole hash of what runs from `place`, None where nothing says it."""
    if _is_checkout(place):
        return checked_out(place)
    return _built_from(place) or _installed_from()


def _is_checkout(place: Path) -> bool:
    """A folder of installed packages may lie in somebody's own repository, but has no pyproject.toml."""
    return (place / ".git").exists() and (place / "pyproject.toml").exists()


def checked_out(root: Path) -> str | None:
    """The commit that HEAD of the checkout in `root` names, None when there is none or it cannot be read."""
    with suppress(OSError, UnicodeDecodeError):
        own, common = _git_folders(root / ".git")
        name = "HEAD"
        for _ in range(_LINKS):
            text = _ref(name, own, common)
            if not text.startswith("ref:"):
                return text if _HASH.fullmatch(text) else None
            name = text.removeprefix("ref:").strip()
    return None


def _git_folders(git: Path) -> tuple[Path, Path]:
    """What belongs to this worktree, and what all worktrees of the repository share; the same folder in most."""
    own = git
    if git.is_file():
        own = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    shared = own / "commondir"
    return own, own / shared.read_text(encoding="utf-8").strip() if shared.is_file() else own


def _ref(name: str, own: Path, common: Path) -> str:
    """What a ref holds, empty when it is nowhere: a file of its own goes before the packed ones."""
    for folder in (own, common):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8").strip()
    packed = common / "packed-refs"
    lines = packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else []
    return next((line.partition(" ")[0] for line in lines if line.endswith(f" {name}")), "")


def _built_from(place: Path) -> str | None:
    with suppress(OSError, UnicodeDecodeError):
        text = (place / COMMIT_FILE).read_text(encoding="utf-8").strip()
        return text if _HASH.fullmatch(text) else None
    return None


def _installed_from() -> str | None:
    """What pip noted of an address such as `git+https://...`."""
    with suppress(metadata.PackageNotFoundError, ValueError, AttributeError):
        note = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
        found = note.get("vcs_info", {}).get("commit_id")
        return str(found) if found else None
    return None
