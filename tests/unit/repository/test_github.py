"""What contributors are told and asked: forms are what GitHub takes, and name what is there; files are as .editorconfig
says."""

from __future__ import annotations

import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GITHUB = ROOT / ".github"
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
TEXTS = [*FORMS, GITHUB / "PULL_REQUEST_TEMPLATE.md", ROOT / "SECURITY.md", CONTRIBUTING]
ONE_PAGE = 120
"""Lines."""
RECORDED = "tests/recorded/"
"""What other programs printed, kept to the byte."""


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_form_is_what_github_takes(form: Path) -> None:
    kind = "config" if form.name == "config.yml" else "forms"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.github-issue-{kind}", str(form)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.name)
def test_files_and_targets_that_people_are_told_of_are_there(text: Path) -> None:
    said = text.read_text(encoding="utf-8")
    for name in re.findall(
        r"(?<![\w/.-])(?:docs|hosts|scenarios|testbed|tests|tools|topos|changelog\.d)/[\w./-]*[\w/]", said
    ):
        assert re.search("NAME|NNNN|ROOM", name) or (ROOT / name).exists(), name
    targets = re.findall(r"\bmake ([\w-]+)", said)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)]


def test_contributing_is_one_page_and_tells_how_each_kind_of_thing_is_added() -> None:
    said = CONTRIBUTING.read_text(encoding="utf-8")
    assert said.count("\n") <= ONE_PAGE
    added = re.findall(r"^\| an? ([\w -]+?) \|", said, re.MULTILINE)
    assert added == [
        *("scenario", "fault kind", "metric", "transport", "family of topologies", "congestion control"),
        *("choice of EVs", "command", "lesson", "story", "decision"),
    ]


def test_programs_that_contributing_calls_are_there() -> None:
    called = set(re.findall(r"\.venv/bin/([\w-]+)", CONTRIBUTING.read_text(encoding="utf-8")))
    assert {"prek", "pytest", "python", "mrc-testbed"} == called
    assert not [name for name in called if not Path(sys.executable).with_name(name).exists()]


def tracked() -> list[str]:
    """Text files of the repository but those that other programs wrote."""
    command = ["git", "grep", "-I", "--name-only", "-e", ""]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if not name.startswith(RECORDED) and (ROOT / name).is_file()]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout: git does not know its files")
def test_files_are_as_the_editor_is_told_to_write_them() -> None:
    settings = ConfigParser()
    settings.read_string("[root]\n" + (ROOT / ".editorconfig").read_text(encoding="utf-8"))
    wanted = {key: settings["*"][key] for key in ("charset", "end_of_line", "insert_final_newline")}
    assert wanted == {"charset": "utf-8", "end_of_line": "lf", "insert_final_newline": "true"}
    assert settings["*"]["trim_trailing_whitespace"] == "true"
    texts = {name: (ROOT / name).read_bytes().decode("utf-8") for name in tracked()}
    assert len(texts) > 1000
    assert not [name for name, text in texts.items() if not text.endswith("\n")], "no newline at the end"
    assert not [name for name, text in texts.items() if "\r\n" in text], "CRLF"
    assert not [name for name, text in texts.items() if re.search(r"[ \t]$", text, re.MULTILINE)], "trailing blanks"
