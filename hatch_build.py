"""What the build adds: the commit that a wheel and an sdist are built from, for `mrc-testbed --version`; and the
repository's address, where the builder says it, in links of the package's page."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "MRC_TESTBED_REPOSITORY"
"""The variable with the address of the repository, such as https://github.com/OWNER/mrc-testbed."""
LINK = re.compile(r"""(\]\(|(?:src|srcset|href)=")(?!https?:|mailto:|#)([^)"\s]+)""")
"""A link to a file beside the page."""
PICTURES = (".png", ".svg", ".gif", ".webp")
PAGES = {"Documentation": "docs", "Changelog": "CHANGELOG.md"}


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


class AddressHook(MetadataHookInterface):  # type: ignore[misc]
    """The README as description, and the project's links. A package index has none of the files beside the README, so
    its links lead to the repository, to the tag of this version."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        address = os.environ.get(REPOSITORY, "").rstrip("/")
        if address:
            tag = f"v{metadata['version']}"
            text = absolute(text, f"{address}/blob/{tag}", f"{address}/raw/{tag}")
            links = {name: f"{address}/blob/{tag}/{page}" for name, page in PAGES.items()}
            metadata["urls"] = {"Source": address, "Issues": f"{address}/issues", **links}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, pages: str, pictures: str) -> str:
    """Markdown whose links to files beside it lead below `pages`, and pictures below `pictures`."""

    def led(found: re.Match[str]) -> str:
        before, target = found.groups()
        return f"{before}{pictures if target.endswith(PICTURES) else pages}/{target}"

    return LINK.sub(led, text)
