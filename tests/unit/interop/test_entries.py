"""The list of programs: every mistake has its place and what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.interop.entries import ListedCapture, ListedImage, ListedProgram, read_entries
from mrc_testbed.testbed.interop.evidence import Role

WRONG = {
    "": "not JSON",
    "[": "not JSON",
    "{}": "must be a list of 1 to 100",
    "[]": "must be a list of 1 to 100",
    "[5]": "[0]: must be an object",
    '[{"name": "a"}]': "[0].program: must be a list of texts",
    '[{"name": "a", "program": "x"}]': "[0].program: must be a list of texts",
    '[{"name": "a", "program": [""]}]': "[0].program: must be a list of texts",
    '[{"name": "../a", "program": ["x"]}]': "[0].name: must be 1 to 40 letters",
    '[{"name": "a", "program": ["x"], "rolle": "sender"}]': "[0].rolle: unknown key; there are name, program, role",
    '[{"name": "a", "program": ["x"], "host": "h0"}]': "[0].host: unknown key; there are name, program, role, form",
    '[{"name": "a", "program": ["x"], "pcap": "y"}]': "[0].pcap: a row has one of program, image, pcap, and program",
    '[{"name": "a", "program": ["x"], "form": "C"}]': "[0].form: must be A (lines, virtual time) or B (sockets",
    '[{"name": "a", "image": "x", "form": "B"}]': "[0].form: unknown key; there are name, image, role",
    '[{"name": "a", "image": "-v"}]': "[0].image: must be the name of an image",
    '[{"name": "a", "image": ["mine"]}]': "[0].image: must be the name of an image",
    '[{"name": "a", "pcap": []}]': "[0].pcap: must be a file, or a list of up to 64",
    '[{"name": "a", "pcap": "none.pcap"}]': "none.pcap is no file",
    '[{"name": "a", "pcap": "list.json", "host": 5}]': "[0].host: must be an address",
    '[{"name": "a", "program": ["x"], "role": "judge"}]': "[0].role: must be one of both, sender, receiver",
    '[{"name": "a", "program": ["x"]}, {"name": "A", "program": ["y"]}]': "[1].name: 'A' is there twice",
}


def test_programs_are_looked_for_from_the_list(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text(
        '\ufeff[{"name": "a", "program": ["./x", "-v"], "role": "sender"}, {"name": "b", "program": ["y"]}]'
    )
    first, second = read_entries(file)
    assert isinstance(first, ListedProgram)
    assert isinstance(second, ListedProgram)
    assert (first.command, first.role) == ((str(tmp_path / "x"), "-v"), Role.SENDER)
    assert (second.command, second.role, second.folder) == (("y",), Role.BOTH, tmp_path)


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_has_its_place(tmp_path: Path, text: str) -> None:
    file = tmp_path / "list.json"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        read_entries(file)
    assert str(error.value).startswith(f"{file}: ")
    assert WRONG[text] in str(error.value)
    assert "\n" not in str(error.value)


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_entries(tmp_path / "list.json")


def test_images_and_captures(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text(
        '[{"name": "a", "image": "registry.example/mine:1", "role": "receiver"},'
        ' {"name": "b", "pcap": ["list.json"], "host": "fd00::1"}]'
    )
    image, capture = read_entries(file)
    assert image == ListedImage("a", "registry.example/mine:1", Role.RECEIVER)
    assert capture == ListedCapture("b", (file,), Role.BOTH, "fd00::1")
