"""One version in every place that says it, and a changelog made of fragments that are well named and short."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FRAGMENTS = ROOT / "changelog.d"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PROJECT["project"]["version"]
KINDS = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
LONGEST, WIDEST = 600, 120
"""Characters of a fragment, and of its lines."""


def mistakes(name: str, text: str) -> list[str]:
    """What is wrong with a fragment."""
    found = []
    if not re.fullmatch(rf"[a-z0-9-]+\.({'|'.join(sorted(KINDS))})(\.\d+)?\.md", name):
        found.append(f"{name}: not NAME.KIND.md")
    if not text.strip() or len(text) > LONGEST:
        found.append(f"{name}: {len(text)} characters")
    if any(len(line) > WIDEST for line in text.splitlines()):
        found.append(f"{name}: a line of more than {WIDEST} columns")
    if re.search(r"^(#|[-*] )|\n\n", text.strip(), re.MULTILINE):
        found.append(f"{name}: more than a paragraph")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target and not (ROOT / target).exists():
            found.append(f"{name}: a link to {target}, which is not there")
    return found


def fragments() -> list[Path]:
    beside = {"README.md", "template.jinja"}
    return sorted(path for path in FRAGMENTS.iterdir() if path.name not in beside)


def test_every_fragment_is_well_named_and_short() -> None:
    assert [line for path in fragments() for line in mistakes(path.name, path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.feat.md", "x"),
        ("A.feature.md", "x"),
        ("a.md", "x"),
        ("a.fix.md", ""),
        ("a.fix.md", "x" * 601),
        ("a.fix.md", "x" * 121),
        ("a.fix.md", "- x"),
        ("a.fix.md", "x\n\ny"),
        ("a.doc.md", "[x](docs/nowhere.md)"),
    ],
)
def test_what_is_wrong_with_a_fragment_is_found(name: str, text: str) -> None:
    assert mistakes(name, text)


def test_the_page_of_fragments_has_every_kind() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ([\w ]+) \|", (FRAGMENTS / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert dict(rows) == {kind["directory"]: kind["name"] for kind in PROJECT["tool"]["towncrier"]["type"]}


def test_towncrier_makes_a_release_of_them(tmp_path: Path) -> None:
    """By the project's settings, from a fragment of each kind, above the releases that are there."""
    (tmp_path / "changelog.d").mkdir()
    for name in ("pyproject.toml", "CHANGELOG.md", "changelog.d/template.jinja", "changelog.d/README.md"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    for kind in KINDS:
        (tmp_path / "changelog.d" / f"some-word.{kind}.md").write_text(f"Of {kind},\nin two lines.\n", encoding="utf-8")
    (tmp_path / "changelog.d" / "some-word.fix.1.md").write_text("One more.\n", encoding="utf-8")
    command = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "99.1", "--date", "2027-01-02"]
    done = subprocess.run([*command, "--dir", str(tmp_path)], capture_output=True, text=True, check=False)
    made = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr
    release = made[made.index("## 99.1 (2027-01-02)") : made.index(f"## {VERSION} (")]
    assert re.findall(r"^### (.*)$", release, re.MULTILINE) == [
        kind["name"] for kind in PROJECT["tool"]["towncrier"]["type"]
    ]
    assert "### Fixed\n\n- One more.\n- Of fix,\n  in two lines.\n\n" in release
    assert "some-word" not in release


def test_every_place_has_the_version() -> None:
    changelog = text("CHANGELOG.md")
    locked = tomllib.loads(text("uv.lock"))["package"]
    said = {
        "CHANGELOG.md": re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", changelog, re.MULTILINE)[0],
        "docs/features.md": re.findall(r"^# What version (\S+) can do$", text("docs/features.md"), re.MULTILINE)[0],
        "uv.lock": next(package["version"] for package in locked if package["name"] == "mrc-testbed"),
    }
    assert said == dict.fromkeys(said, VERSION)


def test_links_of_the_changelog_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", text("CHANGELOG.md"))
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")
