"""The tutorial without a kernel: its commands and options are there, its files are sound, its expectations parse."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.expect import parse_expectation
from testbed.scenario import load_scenario
from testbed.wireview.decode import dissector_path
from tests import tutorial
from tests.unit.test_workflow import assert_known, commands

pytestmark = pytest.mark.slow

TEXT = tutorial.PAGE.read_text(encoding="utf-8")
COMMAND = str(Path(sys.executable).with_name("mrc-testbed"))
FILES = [tutorial.scenario_file(block) for block in tutorial.blocks() if block.kind == "yaml"]


def test_every_command_and_option_is_there() -> None:
    inline = re.findall(r"`((?:sudo )?mrc-testbed [^`]+)`", TEXT)
    found = commands("\n".join([*tutorial.typed(), *inline]))
    assert len(found) >= 7
    for words in found:
        assert_known(words)
    makefile = (tutorial.PAGE.parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ([\w-]+)", "\n".join(tutorial.typed())):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_every_block_is_of_a_known_kind() -> None:
    assert {block.kind for block in tutorial.blocks()} == {"console", "sh", "yaml"}


@pytest.mark.parametrize(("name", "text"), FILES, ids=[name for name, _ in FILES])
def test_every_file_is_a_sound_scenario(name: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert load_scenario(file).expect


def test_every_run_has_a_sound_scenario(tmp_path: Path) -> None:
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    runs = [words for words in commands("\n".join(tutorial.typed())) if words[0] == "run"]
    assert runs
    for _, name, *options in runs:
        assert options[::2] == ["--set"] * (len(options) // 2), options
        assert load_scenario(tmp_path / name, options[1::2]).expect


def test_validate_says_what_the_page_shows(tmp_path: Path) -> None:
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    shown = [one for one in tutorial.commands() if one.text.startswith("mrc-testbed validate")]
    assert shown
    for command in shown:
        said = subprocess.run(
            [COMMAND, *shlex.split(command.text)[1:]],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert said.stdout.splitlines() == list(command.output)


def test_expectations_in_the_text_parse() -> None:
    found = re.findall(r"`((?!mrc\.)[a-z_]+(?:\.\w+)? (?:<=|>=|==) [^`]+)`", TEXT)
    assert found
    for text in found:
        parse_expectation(text)


def test_fields_of_the_filters_are_in_the_dissector() -> None:
    known = set(re.findall(r'"(mrc\.[\w.]+)"', dissector_path().read_text(encoding="utf-8")))
    used = set(re.findall(r"\bmrc\.(?!lua)[a-z_]+(?:\.[a-z_]+)*", TEXT))
    assert used
    assert used <= known


def test_figures_and_blanks_of_output_may_differ_and_words_may_not() -> None:
    shown = ("FAIL  a <= 1 rtt    6.7 rtt  -570%", "...", "end")
    assert tutorial.unlike(shown, ["0.1 s build", "FAIL  a <= 1 rtt  12 rtt  -1,100%", "more", "end"]) == []
    assert tutorial.unlike(shown, ["pass  a <= 1 rtt  0.7 rtt  30%", "end"]) == [shown[0]]
    assert tutorial.verdicts(["FAIL  a <= 1 rtt    6.7 rtt", "pass  b == 0   0", "      x.yaml:3"]) == {
        "a <= 1 rtt": "FAIL",
        "b == 0": "pass",
    }
    assert tutorial.unlike(["─────"], ["────"]) == [], "a table is as wide as its figures"
    together = ["2.1 s: one [1 ms after this packet],2.2 s: two [0.1 ms before this packet]"]
    assert (
        tutorial.unlike(["2.0 s: one [3 ms before this packet]", "2.4 s: two [1 ms after this packet]"], together) == []
    )
    assert tutorial.unlike(["2.4 s: two", "2.0 s: one"], together) == ["2.0 s: one"]
