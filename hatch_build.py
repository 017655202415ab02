"""Writes into a wheel and an sdist the commit that they are built from, for `mrc-testbed --version`."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):  # type: ignore[misc]
    """An editable install is left alone: what runs there is the checkout, whose commit changes."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        ours = runpy.run_path(str(root / "testbed" / "version.py"))
        commit = ours["checked_out"](root)
        if version == "editable" or commit is None:
            return
        made = Path(self.directory) / "commit.txt"
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(f"{commit}\n", encoding="utf-8")
        place = Path("mrc_testbed" if self.target_name == "wheel" else "")
        build_data["force_include"][str(made)] = (place / ours["COMMIT_FILE"]).as_posix()
        self._made = made

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_made"):
            self._made.unlink()
