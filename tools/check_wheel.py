#!/usr/bin/env python3
"""Check the wheel and the sdist in a folder, before anybody installs them: contents, one import name, licence, size,
metadata, names that Windows takes.

    tools/check_wheel.py dist
    tools/check_wheel.py dist --tag v0.2.0 --url https://github.com/OWNER/mrc-testbed   # as a release does

Prints a line a file and ends with 0, or prints every mistake and ends with 1. Needs `trove-classifiers`, which
hatchling brings.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path, PurePosixPath

from trove_classifiers import classifiers

ROOT = Path(__file__).resolve().parents[1]
NAME = "mrc_testbed"
SOURCES = {"src/mrc_testbed": NAME} | {room: f"{NAME}/{room}" for room in ("testbed", "hosts", "topos", "scenarios")}
"""Folders of the checkout, and where a wheel has them."""
MADE = {f"{NAME}/testbed/commit.txt"}
"""What is in a wheel and not in the checkout."""
WHEEL_LIMIT, SDIST_LIMIT = 3_000_000, 6_000_000
"""Bytes. A third more than the files had when these were set: what exceeds them was put in by mistake, or is news."""
LONGEST = 130
"""Characters of a path: the usual 260 of Windows hold twice as much."""
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
SDIST_HAS = ("PKG-INFO", "pyproject.toml", "hatch_build.py", "LICENSE", "README.md", "CHANGELOG.md", "uv.lock")
LINK = re.compile(r"""(?:\]\(|(?:src|srcset|href)=")(?!https?:|mailto:|#)([^)"\s]+)""")
"""A link to a file beside the page, which a package index does not have."""


class Wheel:
    """The contents of a wheel."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            self.files = {entry.filename: archive.read(entry) for entry in archive.infolist() if not entry.is_dir()}
        self.version = path.name.split("-")[1]
        self.info = f"{NAME}-{self.version}.dist-info"

    def text(self, name: str) -> str:
        """A file of its dist-info, empty if it has none."""
        return self.files.get(f"{self.info}/{name}", b"").decode()

    @property
    def metadata(self) -> Message:
        return message_from_string(self.text("METADATA"))


def wanted_files() -> dict[str, Path]:
    """What a wheel of this checkout has to hold, by name."""
    found = {}
    for folder, place in SOURCES.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                found[f"{place}/{path.relative_to(ROOT / folder).as_posix()}"] = path
    return found


def wrong_contents(wheel: Wheel) -> list[str]:
    """Files that are missing, that nobody expects, or that differ from the checkout; more than one import name."""
    inside = {name for name in wheel.files if not name.startswith(f"{wheel.info}/")}
    wanted = wanted_files()
    missing, strange = wanted.keys() - inside, inside - wanted.keys() - MADE
    other = {name for name in wanted.keys() & inside if wheel.files[name] != wanted[name].read_bytes()}
    tops = {name.split("/")[0] for name in wheel.files} - {NAME, wheel.info}
    return [
        *(f"{name} is missing" for name in sorted(missing)),
        *(f"{name} does not belong there" for name in sorted(strange)),
        *(f"{name} differs from the checkout" for name in sorted(other)),
        *(f"{name} would be a second import name" for name in sorted(tops)),
    ]


def wrong_record(wheel: Wheel) -> list[str]:
    """Files whose sum in RECORD is another one, or which RECORD lacks."""
    rows = [line.rsplit(",", 2) for line in wheel.text("RECORD").splitlines()]
    sums = {name.strip('"'): kept for name, kept, _size in rows}
    own = f"{wheel.info}/RECORD"
    return [
        f"RECORD does not have the sum of {name}"
        for name, data in wheel.files.items()
        if name != own and sums.get(name) != _sum(data)
    ]


def _sum(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def wrong_names(names: list[str]) -> list[str]:
    """Paths that Windows refuses, and pairs that it takes for one."""
    found = [f"{name}: longer than {LONGEST} characters" for name in names if len(name) > LONGEST]
    for name in names:
        parts = PurePosixPath(name).parts
        if any(re.search(r'[<>:"\\|?*\x00-\x1f]|[. ]$', part) or RESERVED.fullmatch(part) for part in parts):
            found.append(f"{name}: Windows takes no such name")
    seen: dict[str, str] = {}
    for name in names:
        if (same := seen.setdefault(name.lower(), name)) != name:
            found.append(f"{name} and {same} are one file where case does not count")
    return found


def wrong_metadata(wheel: Wheel, url: str | None) -> list[str]:
    """What an index or a user would miss. With `url`: links of the project, and none that leads beside the page."""
    data, project = wheel.metadata, tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {
        "Name": project["name"],
        "Version": project["version"],
        "Summary": project["description"],
        "Requires-Python": project["requires-python"],
        "License-Expression": "Apache-2.0",
        "License-File": "LICENSE",
        "Description-Content-Type": "text/markdown",
    }
    found = [f"{key} is {data[key]!r}, not {value!r}" for key, value in wanted.items() if data[key] != value]
    found += [f"no classifier {name!r} exists" for name in data.get_all("Classifier", []) if name not in classifiers]
    found += [f"{key} is missing" for key in ("Classifier", "Keywords") if not data[key]]
    if not str(data.get_payload()).lstrip().startswith("# mrc-testbed"):
        found.append("the description is not the README")
    if wheel.text("licenses/LICENSE") != (ROOT / "LICENSE").read_text(encoding="utf-8"):
        found.append("the licence is not that of the checkout")
    if f"{project['name']} = mrc_testbed.__main__:main" not in wheel.text("entry_points.txt"):
        found.append(f"there is no command {project['name']}")
    return found + (wrong_links(data, url) if url else [])


def wrong_links(data: Message, url: str) -> list[str]:
    """Project links elsewhere than at `url`, and links in the description to files beside it."""
    given = [line.split(", ", 1)[1] for line in data.get_all("Project-URL", [])]
    found = [f"Project-URL {link} is not at {url}" for link in given if not link.startswith(url)]
    found += [] if given else ["Project-URL is missing"]
    return found + [f"the description leads to {link}" for link in LINK.findall(str(data.get_payload()))]


def wrong_sdist(path: Path) -> list[str]:
    """Files without which nobody could build from it, and what was generated."""
    with tarfile.open(path) as archive:
        names = [member.name for member in archive.getmembers() if member.isfile()]
    first = path.name.removesuffix(".tar.gz")
    inside = {name.removeprefix(f"{first}/") for name in names}
    found = [f"{name} is missing" for name in SDIST_HAS if name not in inside]
    found += [f"{name} does not belong there" for name in sorted(inside) if re.search(r"\.pyc$|(^|/)\.venv/", name)]
    return found


def wrong_size(path: Path, limit: int) -> list[str]:
    size = path.stat().st_size
    return [f"{size:,} bytes, more than {limit:,}"] if size > limit else []


def wrong_version(version: str, tag: str | None) -> list[str]:
    return [f"version {version} under the tag {tag}"] if tag is not None and tag != f"v{version}" else []


def mistakes(folder: Path, tag: str | None = None, url: str | None = None) -> list[str]:
    """Of the one wheel and the one sdist in the folder."""
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        return [f"{folder}: {len(wheels)} wheels and {len(sdists)} sdists, not one of each"]
    wheel = Wheel(wheels[0])
    if not wheels[0].name.endswith("-py3-none-any.whl"):
        return [f"{wheels[0].name}: not for every system"]
    found = [
        *wrong_version(wheel.version, tag),
        *wrong_size(wheels[0], WHEEL_LIMIT),
        *wrong_contents(wheel),
        *wrong_record(wheel),
        *wrong_names(list(wheel.files)),
        *wrong_metadata(wheel, url),
    ]
    of_sdist = [*wrong_size(sdists[0], SDIST_LIMIT), *wrong_sdist(sdists[0])]
    return [f"{wheels[0].name}: {line}" for line in found] + [f"{sdists[0].name}: {line}" for line in of_sdist]


def main() -> int:
    """Entry point."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with one wheel and one sdist")
    parser.add_argument("--tag", help="of the release: `v` and the version")
    parser.add_argument("--url", help="of the repository, which the metadata has to name")
    options = parser.parse_args()
    if found := mistakes(options.folder, options.tag, options.url):
        print("\n".join(found), file=sys.stderr)
        return 1
    for path, limit in (
        (next(options.folder.glob("*.whl")), WHEEL_LIMIT),
        (next(options.folder.glob("*.gz")), SDIST_LIMIT),
    ):
        print(f"{path.name}: {path.stat().st_size:,} bytes of at most {limit:,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
