"""The tables of faults in docs/scenario.md say what the registry of kinds says."""

from __future__ import annotations

import re
from pathlib import Path

from mrc_testbed.testbed.scenario import EndpointSettings
from mrc_testbed.testbed.scenario.faults import KINDS, entry_models
from mrc_testbed.testbed.scenario.faults.chaos import parts

PAGE = (Path(__file__).parents[3] / "docs/scenario.md").read_text(encoding="utf-8")
AT_ENTRIES = {"at", "name"}


def rows(head: str) -> list[list[str]]:
    """The cells of the table with this head."""
    _, _, below = PAGE.partition(f"{head}\n")
    assert below, f"docs/scenario.md has no table {head}"
    lines = below.split("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


FAULTS = {words(kind)[0].partition(":")[0]: (kind, keys) for kind, keys, _ in rows("| kind | keys | what happens |")}


def keys_said(kind: str) -> set[str]:
    """Keys in the second column; "as `link-flap`" means those of that row. Values are in brackets."""
    text = re.sub(r"\([^)]*\)", "", FAULTS[kind][1])
    like = re.match(r"as `([a-z-]+)`", text)
    own = set(words(text)) - ({like[1]} if like else set())
    return own | (keys_said(like[1]) if like else set())


def test_every_kind_stands_in_the_table_of_faults() -> None:
    assert sorted(FAULTS) == sorted(entry_models())


def test_the_keys_of_each_kind_are_named() -> None:
    for kind, model in entry_models().items():
        keys = {field.alias or name for name, field in model.model_fields.items()}
        assert keys_said(kind) | AT_ENTRIES == keys - {kind} | AT_ENTRIES, kind


def test_the_kinds_that_need_the_port_program_are_marked() -> None:
    marked = {kind for kind, (text, _) in FAULTS.items() if text.endswith("*")}
    assert marked == {kind for kind, model in KINDS.items() if model.effect.needs_program}


def test_what_chaos_takes_by_default_is_said() -> None:
    said = {kind: of for kinds, of, _ in rows("| kind | `of` | other keys |") for kind in words(kinds)}
    targets = {kind: words(of) for kind, of in said.items()}
    assert sorted(said) == sorted(parts())
    for kind in parts():
        assert (KINDS[kind].chaos or {})["of"] in targets[kind], kind
    whole = " ".join(" ".join(row) for row in rows("| kind | `of` | other keys |"))
    for kind in parts():
        for key, value in (KINDS[kind].chaos or {}).items():
            assert key == "of" or f"{value}`" in whole, (kind, key)


def test_the_keys_of_the_endpoint_stand_in_their_table_with_their_defaults() -> None:
    said = {words(key)[0]: default.strip("`") for key, _, default, _ in rows("| key | values | default | meaning |")}
    usual = EndpointSettings().written() | {"denylist": "none"}
    assert said == usual
