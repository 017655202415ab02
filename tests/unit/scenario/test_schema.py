"""The schema that editors read: it is the code's, takes every scenario of ours, and each of them leads to it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from make_schema import text
from mrc_testbed.testbed.lessons.lesson import ANSWERS_FILE, SOLUTION_ANSWERS_FILE
from mrc_testbed.testbed.scenario import load_scenario, scenario_json_schema
from mrc_testbed.testbed.scenario.load.schema import SCHEMA_ID
from mrc_testbed.testbed.scenario.load.shipped import CHECK_FILE, FOLDER, SCHEMA_FILE, with_own_hint
from tests.unit.calls import Call

ROOT = Path(__file__).parents[3]
PLACES = (FOLDER, ROOT / "docs" / "examples", ROOT / "testbed" / "lessons" / "template")
NO_SCENARIO = (CHECK_FILE, ANSWERS_FILE, SOLUTION_ANSWERS_FILE)
FILES = [path for place in PLACES for path in sorted(place.rglob("*.yaml")) if path.name not in NO_SCENARIO]
HINT = re.compile(r"# yaml-language-server: \$schema=(\S+)")


def schema_named(text: str, folder: Path) -> Path:
    """The file that an editor reads for a scenario in `folder`: its comments end where the first key begins."""
    (named,) = HINT.findall(text)
    assert text.index(named) < re.search(r"^\w", text, re.MULTILINE).start()  # type: ignore[union-attr]
    return (folder / named).resolve()


def test_the_file_is_what_the_code_says() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == text(), "run: python tools/make_schema.py"


def test_it_is_as_schemastore_wants_it() -> None:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    Draft7Validator.check_schema(schema)
    assert list(schema)[:4] == ["$schema", "$id", "title", "description"]
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert schema["$id"] == SCHEMA_ID
    assert "prefixItems" not in text(), "of a later draft"


def test_it_takes_every_scenario_and_finds_mistakes() -> None:
    validator = Draft7Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
    loaded = {path: YAML(typ="safe").load(path.read_text(encoding="utf-8")) for path in FILES}
    wrong = {path: [error.message for error in validator.iter_errors(one)] for path, one in loaded.items()}
    assert not {path: messages for path, messages in wrong.items() if messages}
    quickstart = loaded[FOLDER / "quickstart.yaml"]
    mistakes: list[dict[str, Any]] = [{"fabrik": {}}, {"seed": -1}, {"fabric": {"switch": {"ecn": [0.2, 0.8, 0.9]}}}]
    for mistake in mistakes:
        assert not validator.is_valid(quickstart | mistake), mistake


def test_with_plugins_it_is_another_schema(tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs" / "examples" / "random_spray.py", tmp_path)
    text = "name: x\nplugins: [random_spray.py]\nworkload:\n  - train: {steps: 1, compute: 1ms, allreduce: 64KiB}\n"
    (tmp_path / "x.yaml").write_text(text)
    schema = scenario_json_schema(load_scenario(tmp_path / "x.yaml").offered)
    assert "random-spray" in json.dumps(schema)
    assert "$id" not in schema


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_scenario_leads_an_editor_to_it_here_and_elsewhere(path: Path, tmp_path: Path) -> None:
    said = path.read_text(encoding="utf-8")
    assert schema_named(said, path.parent) == SCHEMA_FILE
    assert schema_named(with_own_hint(said), tmp_path) == SCHEMA_FILE


def test_so_does_what_commands_copy(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (("scenarios", "copy", "paper/fig14"), ("lesson", "start", "3", "mine"), ("lesson", "new", "own")):
        assert call(*words).status == 0
    copied = ("fig14.yaml", "mine/few.yaml", "mine/enough.yaml", "own/start.yaml", "own/solution.yaml")
    for path in map(Path, copied):
        assert schema_named(path.read_text(encoding="utf-8"), tmp_path) == SCHEMA_FILE


def test_a_hint_of_the_user_s_own_stays() -> None:
    mine = "# yaml-language-server: $schema=https://example.com/scenario.schema.json\nname: x\n"
    assert with_own_hint(mine) == mine
