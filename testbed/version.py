"""Version, commit and location of mrc-testbed. Also loaded by hatch_build.py, so it imports nothing of the project.

It reads the commit of a checkout from `.git` without git: a bare machine has none, and under sudo git refuses a folder
of another owner.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from importlib import metadata
from pathlib import Path

NAME = "mrc-testbed"
PUBLISHED = False
"""Whether the package index has it under this name, and the repository a tag for its version. Until then nothing that
people read names either (tests/unit/repository/test_published.py)."""
PLACE = Path(__file__).resolve().parents[1]
"""The folder that contains `testbed`: the checkout, or the installed package."""
COMMIT_FILE = Path("testbed", "commit.txt")
"""In a wheel: the commit it was built from."""
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LINKS = 5
"""Maximum depth of symbolic refs, as in git."""


def install_extra(extra: str) -> str:
    """The command that installs what an extra needs."""
    return f"pip install '{NAME}[{extra}]'" if PUBLISHED else f"pip install '.[{extra}]' in a clone of {NAME}"


def version_line() -> str:
    """Such as `mrc-testbed 0.2.0 (commit 1a2b3c4, /home/me/mrc-testbed)`."""
    known = commit()
    return f"{NAME} {metadata.version(NAME)} (commit {known[:7] if known else 'unknown'}, {PLACE})"


def commit(place: Path = PLACE) -> str | None:
    """The full hash of the code in `place`, None if unknown."""
    if _is_checkout(place):
        return checked_out(place)
    return _built_from(place) or _installed_from()


def _is_checkout(place: Path) -> bool:
    """True for a checkout of the project; an installed package may lie in another repository, but has no
    pyproject.toml."""
    return (place / ".git").exists() and (place / "pyproject.toml").exists()


def checked_out(root: Path) -> str | None:
    """The commit of HEAD in the checkout `root`, None if it cannot be read."""
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
    """The git folder of this worktree, and the common one of all worktrees; usually the same."""
    own = git
    if git.is_file():
        own = git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    shared = own / "commondir"
    return own, own / shared.read_text(encoding="utf-8").strip() if shared.is_file() else own


def _ref(name: str, own: Path, common: Path) -> str:
    """The value of a ref, empty if it does not exist: a loose file takes precedence over packed refs."""
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
    """The commit that pip recorded for a source such as `git+https://...`."""
    with suppress(metadata.PackageNotFoundError, ValueError, AttributeError):
        note = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
        found = note.get("vcs_info", {}).get("commit_id")
        return str(found) if found else None
    return None
