"""The tutorial without a kernel: its commands and options are there, its files are sound, its expectations parse."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mrc_testbed.testbed.expect import parse_expectation
from mrc_testbed.testbed.scenario import load_scenario
from mrc_testbed.testbed.wireview.decode import dissector_path
from tests import documented, tutorial
from tests.unit.repository.test_workflow import assert_known, commands

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
        changes = [option for option in options if option != "--virtual"]
        assert changes[::2] == ["--set"] * (len(changes) // 2), options
        assert load_scenario(tmp_path / name, changes[1::2]).expect


WITHOUT_ROOT = [one for one in tutorial.commands() if one.text.startswith(("mrc-testbed validate", "mrc-testbed run"))]


@pytest.mark.parametrize("command", WITHOUT_ROOT, ids=[one.text for one in WITHOUT_ROOT])
@pytest.mark.nightly(keep=2)
def test_a_command_without_root_prints_every_figure_that_the_page_shows(
    command: tutorial.Command, tmp_path: Path
) -> None:
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    said = subprocess.run(
        [COMMAND, *shlex.split(command.text)[1:]],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    printed = said.stdout.splitlines()
    assert tutorial.unlike(command.output, printed, exact=True) == [], said.stdout
    if "expect.2=recovery.p100 <= 8 rtt" in command.text:
        assert tutorial.unlike(documented.summary(), printed, exact=True) == [], said.stdout


def test_figures_of_the_text_are_those_of_the_output() -> None:
    """What prose and the picture's caption say of the run is in the output above them."""
    shown = "\n".join(line for command in tutorial.commands() for line in command.output)
    recovery = re.search(r"FAIL  recovery.* (\S+) rtt", shown)
    packets = re.search(r"^cut +2 s, 1 s +2 +(\d+)  \S+ rtt, (\d+) ms$", shown, re.M)
    most = re.search(r"^cut .*  (\S+ \S+) +(\d+) +- +\d+ ms$", shown, re.M)
    assert recovery
    assert packets
    assert most
    prose = " ".join(TEXT.split())
    for said in (
        f"GOOD for {packets[2]} ms",
        f"{packets[1]} packets taken for lost; recovery {recovery[1]} rtt",
        f"needed {recovery[1]} round trips",
        f"says `{most[1]}`",
        f"{packets[1]} packets were dropped in that while, at most {most[2]} of one host",
    ):
        assert said in prose


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


def test_a_figure_that_differs_is_told_where_output_is_exact() -> None:
    shown = ("FAIL  a <= 1 rtt    2.31 rtt", "FAIL  x  results/20261122T065507Z-x")
    again = ["FAIL  a <= 1 rtt  3.41 rtt", "FAIL  x  results/20261125T065507Z-x"]
    assert tutorial.unlike(shown, again) == []
    assert tutorial.unlike(shown, again, exact=True) == [shown[0]]


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
