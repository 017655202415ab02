"""Decisions have their five parts and are in the index; measurements have a date and a command, newest first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DECISIONS = ROOT / "docs" / "decisions"
FILES = sorted(DECISIONS.glob("[0-9]*.md"))
MEASUREMENTS = ROOT / "docs" / "measurements"
TOPICS = sorted(path for path in MEASUREMENTS.glob("*.md") if path.name != "README.md")
HEAD = re.compile(
    r"# (?P<number>\d{4}) (?P<title>.+)\n\n"
    r"- Status: (?P<status>accepted|replaced by \[\d{4}\]\(\d{4}-[a-z0-9-]+\.md\))\n"
    r"- Date: (?P<date>\d{4}-\d\d-\d\d(; changed \d{4}-\d\d-\d\d)?)\n"
    r"- Rooms: (?P<rooms>[a-z]+(, [a-z]+)*)\n\n"
)
SECTIONS = ["Context", "Decision", "Consequences"]
WHOLE = """# 0001 A title

- Status: accepted
- Date: 2026-11-20
- Rooms: hosts

## Context

Why.

## Decision

What.

## Consequences

So.
"""


def lacks(text: str) -> str:
    """What a decision lacks of its parts: "" if nothing."""
    head = HEAD.match(text)
    if not head:
        return "title with number, Status, Date and Rooms"
    parts = re.split(r"^## (.*)$", text[head.end() :], flags=re.M)
    if parts[1::2] != SECTIONS:
        return f"the sections {SECTIONS}, these and no other"
    return "".join(f"text below {name}; " for name, body in zip(SECTIONS, parts[2::2], strict=True) if not body.strip())


def of_head(file: Path) -> re.Match[str]:
    head = HEAD.match(file.read_text(encoding="utf-8"))
    assert head, file.name
    return head


def index() -> list[str]:
    """The rows that the files ask for, by room and number."""
    rows = []
    for file in FILES:
        head = of_head(file)
        for room in head["rooms"].split(", "):
            link = f"[{head['number']}]({file.name})"
            rows.append(f"| {room} | {link} | {head['title']} | {head['status']} | {head['date']} |")
    return sorted(rows)


def table(page: Path) -> list[str]:
    """Rows of the table of a page, without its two rows of headings."""
    return [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")][2:]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_decision_has_its_five_parts(file: Path) -> None:
    assert not lacks(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("part", "without"),
    [
        ("- Status: accepted\n", ""),
        ("accepted", "replaced"),
        ("- Date: 2026-11-20\n", ""),
        ("2026-11-20", "in November"),
        ("- Rooms: hosts\n", ""),
        ("## Context\n\nWhy.\n\n", ""),
        ("What.", ""),
        ("## Consequences", "## What follows"),
    ],
)
def test_a_decision_without_one_of_them_is_found(part: str, without: str) -> None:
    assert not lacks(WHOLE)
    assert lacks(WHOLE.replace(part, without))


def test_the_index_has_a_row_for_each_decision_in_each_of_its_rooms() -> None:
    assert table(DECISIONS / "README.md") == index()


def test_numbers_are_those_of_the_file_names_without_gaps() -> None:
    assert [of_head(file)["number"] for file in FILES] == [file.name[:4] for file in FILES]
    assert [int(file.name[:4]) for file in FILES] == list(range(1, len(FILES) + 1))


def test_rooms_of_decisions_are_folders() -> None:
    rooms = {room for file in FILES for room in of_head(file)["rooms"].split(", ")}
    assert not {room for room in rooms if not (ROOT / room).is_dir() and not (ROOT / "testbed" / room).is_dir()}


@pytest.mark.parametrize("page", TOPICS, ids=lambda page: page.stem)
def test_each_measurement_has_a_date_and_a_command_newest_first(page: Path) -> None:
    parts = re.split(r"^## (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    dates = [match[0] if (match := re.match(r"\d{4}-\d\d-\d\d(?=: )", title)) else title for title in parts[1::2]]
    assert dates
    assert [date for date in dates if re.fullmatch(r"[\d-]+", date)] == dates
    assert dates == sorted(dates, reverse=True)
    assert [body for body in parts[2::2] if not body.startswith("\n\nCommand: ")] == []


def test_the_index_of_measurements_has_each_topic_and_its_newest_date() -> None:
    newest = {page.name: re.findall(r"^## ([\d-]+)", page.read_text(encoding="utf-8"), re.M)[0] for page in TOPICS}
    rows = (
        re.fullmatch(r"\| \[[^]]+\]\(([^)]+)\) \| .* \| ([\d-]+) \|", row) for row in table(MEASUREMENTS / "README.md")
    )
    assert {row[1]: row[2] for row in rows if row} == newest
