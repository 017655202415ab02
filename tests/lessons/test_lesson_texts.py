"""What the texts of lessons name is there: commands, options, files, keys and links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mrc_testbed.testbed import cli
from mrc_testbed.testbed.expect import METRICS
from mrc_testbed.testbed.scenario import scenario_json_schema
from mrc_testbed.testbed.scenario.load.shipped import shipped
from tests.lessons.stage import LESSONS, loaded, named

MOST_LINES = 130
"""Two pages."""
OUTER_KEYS = ("fabric", "endpoint", "workload", "faults", "roce", "tcp", "ecmp", "virtual")
each_lesson = pytest.mark.parametrize("folder", LESSONS, ids=named)


def texts(folder: Path) -> str:
    """All that students read as prose."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md")))


def commands(text: str) -> Iterator[list[str]]:
    """The words of each call of the program, on a line of its own or inside a sentence."""
    lines = re.findall(r"^\s*(?:sudo )?(mrc-testbed .*)$", text, re.M) + re.findall(
        r"`(?:sudo )?(mrc-testbed [^`]+)`", text
    )
    for line in lines:
        yield shlex.split(line.replace("\\", "").partition(" | ")[0].partition(" > ")[0], comments=True)[1:]


def command_named(words: list[str]) -> Any:
    """The command that these words call, and the words left for it."""
    found: Any = typer.main.get_command(cli.app)
    while hasattr(found, "commands") and words and words[0] in found.commands:
        found, words = found.commands[words[0]], words[1:]
    return found, words


@each_lesson
def test_every_command_and_option_in_it_is_there(folder: Path) -> None:
    for words in commands(texts(folder)):
        command, left = command_named(words)
        assert not getattr(command, "commands", {}) or getattr(command, "invoke_without_command", False), words
        options = {name for parameter in command.params for name in parameter.opts}
        unknown = [word for word in left if word.startswith("--") and word.partition("=")[0] not in options]
        assert unknown == [], words


@each_lesson
def test_every_file_that_it_names_is_handed_out_or_shipped(folder: Path) -> None:
    lesson = loaded(folder)
    there = {name for _, name in lesson.handed_out()} | {"lesson.md", "plan.json", "compare.html", "report.html"}
    there |= {path.name for path in folder.iterdir()} | {"events.jsonl", "recovery.json", "verdict.json"}
    scenarios = {one.name for one in shipped()}
    for name in re.findall(r"`([\w./=-]+\.(?:yaml|md|html|json|jsonl|csv))`", texts(folder)):
        assert name.rpartition("/")[2] in there or name.removesuffix(".yaml") in scenarios or _documented(name), name


def _documented(name: str) -> bool:
    """A file of every run folder, or a page of the documentation."""
    root = Path(__file__).parents[2]
    pages = (root / "docs/results.md").read_text(encoding="utf-8")
    return f"`{name.rpartition('/')[2]}`" in pages or (root / name).is_file() or (root / "docs" / name).is_file()


@each_lesson
def test_every_link_leads_somewhere(folder: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", texts(folder)):
        file = target.partition("#")[0]
        assert "://" in target or not file or (folder / file).exists(), target


@each_lesson
def test_every_key_that_it_names_is_one_of_scenarios(folder: Path) -> None:
    schema = scenario_json_schema()
    for dotted in re.findall(rf"`((?:{'|'.join(OUTER_KEYS)})\.[a-z0-9_.-]+)`", texts(folder)):
        assert _is_key(schema, schema, dotted.split(".")), dotted


def _is_key(schema: Any, inside: Any, path: list[str]) -> bool:
    """Below lists and choices any of the forms may have it."""
    if not path:
        return True
    if "$ref" in inside:
        return _is_key(schema, schema["$defs"][inside["$ref"].rpartition("/")[2]], path)
    below = [*inside.get("anyOf", ()), *inside.get("oneOf", ()), *inside.get("allOf", ())]
    if path[0].isdigit() and "items" in inside:
        return _is_key(schema, inside["items"], path[1:])
    found = inside.get("properties", {}).get(path[0])
    return (found is not None and _is_key(schema, found, path[1:])) or any(_is_key(schema, one, path) for one in below)


@each_lesson
def test_every_metric_that_it_names_in_code_is_one(folder: Path) -> None:
    words = set(re.findall(r"`([a-z_]+)\.(?:p50|p99|p100|max|min|mean|median)\b", texts(folder)))
    assert words <= set(METRICS)


@each_lesson
def test_it_has_two_pages_at_most_and_two_hints_at_least(folder: Path) -> None:
    lesson = loaded(folder)
    assert len(lesson.text.splitlines()) <= MOST_LINES
    assert len(lesson.hints) >= 2


@each_lesson
def test_every_question_is_asked_for_the_browser(folder: Path) -> None:
    assert [one.name for one in loaded(folder).questions if not one.ask] == []
