"""Texts of `--help`: whole words within the width of the terminal, and quickly there."""

from __future__ import annotations

import re
from typing import Any

import pytest
from typer import main

from mrc_testbed.testbed import cli
from mrc_testbed.testbed.commands.help import first_sentence
from tests.unit.calls import Call
from tests.unit.testbed.test_cli import COMMANDS

GROUPS = ("", "results", "scenarios", "topo", "sweep", "lesson", "incident")


def help_of(call: Call, monkeypatch: pytest.MonkeyPatch, words: str, columns: int = 80) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    return call(*words.split(), "--help").out.splitlines()


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("words", [*GROUPS, *COMMANDS])
def test_no_help_is_wider_than_the_screen_or_cut(
    call: Call, monkeypatch: pytest.MonkeyPatch, words: str, columns: int
) -> None:
    lines = help_of(call, monkeypatch, words, columns)
    assert [line for line in lines if len(line) > columns] == []
    assert [line for line in lines if "…" in line or re.search(r"[a-z,]\.\.\.$", line)] == []


@pytest.mark.parametrize("words", [*GROUPS, *COMMANDS])
def test_a_help_says_kinds_of_values_in_words(call: Call, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    text = "\n".join(help_of(call, monkeypatch, words))
    assert not re.search(r"<\w+>|list\[|\{[A-Z]|x>=|\[required|\[/?bold", text)


def command(words: str) -> Any:
    found: Any = main.get_command(cli.app)
    for word in words.split():
        found = found.commands[word]
    return found


@pytest.mark.parametrize("words", [*GROUPS, *COMMANDS])
def test_a_help_has_every_option(call: Call, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    text = " ".join(help_of(call, monkeypatch, words))
    names = [name for one in command(words).params if not getattr(one, "hidden", False) for name in one.opts]
    assert [name for name in names if name.startswith("-") and name not in text] == []


def test_many_options_are_in_groups_and_few_are_not(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    run, clean = (help_of(call, monkeypatch, words) for words in ("run", "clean"))
    titles = [line for line in run if re.fullmatch(r"\w.*:", line)]
    assert titles == [
        *("Arguments:", "What is run:", "How it is run:", "What is printed and written:", "While it runs:", "Options:"),
    ]
    assert "Usage: mrc-testbed run [OPTIONS] SCENARIO..." in run
    assert [line for line in clean if re.fullmatch(r"\w.*:", line)] == ["Options:"]


def test_a_group_lists_commands_with_their_first_sentence(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(" ".join(help_of(call, monkeypatch, "")).split())
    for name, one in command("").commands.items():
        assert f"{name} {first_sentence(one.help)}." in text
