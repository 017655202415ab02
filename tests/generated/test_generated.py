"""A hundred random scenarios in virtual time. A seed that fails names the file that it left, to be run by hand.

More of them: `pytest tests/generated --generated-seeds 1000 --generated-first 5000`, or `python -m tests.generated`.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from mrc_testbed.testbed.expect.metrics import known_metrics
from mrc_testbed.testbed.scenario.faults.chaos import Chaos, parts
from mrc_testbed.testbed.scenario.faults.registry import KINDS
from mrc_testbed.testbed.scenario.model.arrival_models import ARRIVAL_KINDS
from mrc_testbed.testbed.scenario.model.bgp import BgpSettings
from mrc_testbed.testbed.scenario.model.captures import Capture
from mrc_testbed.testbed.scenario.model.controller import ControllerSettings
from mrc_testbed.testbed.scenario.model.endpoint import EndpointSettings
from mrc_testbed.testbed.scenario.model.fabric import FabricSettings
from mrc_testbed.testbed.scenario.model.flow_models import FLOW_KINDS
from mrc_testbed.testbed.scenario.model.graph_model import GraphEntry
from mrc_testbed.testbed.scenario.model.mapper import MapperSettings
from mrc_testbed.testbed.scenario.model.models import Scenario
from mrc_testbed.testbed.scenario.model.paper import Paper
from mrc_testbed.testbed.scenario.model.step_models import STEP_KINDS, StepItem
from mrc_testbed.testbed.scenario.model.switch_ports import SwitchPorts
from mrc_testbed.testbed.scenario.model.transports import EcmpSettings, VirtualSettings
from mrc_testbed.testbed.scenario.model.trimming import TrimSettings
from mrc_testbed.testbed.scenario.model.workloads import WorkloadItem
from mrc_testbed.testbed.scenario.text.denylist import Denial
from mrc_testbed.testbed.scenario.text.fields import Model
from mrc_testbed.testbed.scenario.text.yaml_text import parse_source
from mrc_testbed.testbed.transports.roce import RoceSettings
from mrc_testbed.testbed.transports.tcp import TcpSettings
from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.registry import FAMILIES
from tests.generated.__main__ import FAILED, try_seed
from tests.generated.keys import KEYS
from tests.generated.parts import ENDS
from tests.generated.scenario import COMPOSED, drawn_scenario
from tests.generated.wiring import drawn_family, written_keys

SECTIONS: dict[str, list[type[Model]]] = {
    "fabric": [FabricSettings],
    "switch": [SwitchPorts],
    "endpoint": [EndpointSettings],
    "trimming": [TrimSettings],
    "controller": [ControllerSettings],
    "mapper": [MapperSettings],
    "denial": [Denial],
    "roce": [RoceSettings],
    "tcp": [TcpSettings],
    "ecmp": [EcmpSettings],
    "bgp": [BgpSettings],
    "virtual": [VirtualSettings],
    "job": [*STEP_KINDS.values()],
    "exchange": [*StepItem.models().values()],
    "flow": [model for kind, model in FLOW_KINDS.items() if kind != "latency"],
    "latency": [FLOW_KINDS["latency"]],
    **{kind: [model] for kind, model in ARRIVAL_KINDS.items()},
    "graph": [GraphEntry],
    "fault": [*KINDS.values(), *parts().values(), Chaos],
    "capture": [Capture],
    "paper": [Paper],
    "scenario": [Scenario],
}
"""The models whose keys each section of KEYS draws."""
COMPOSED_IN_PARTS = {"switch": {"use"}, "flow": set(ENDS), "latency": set(ENDS), "capture": {"links", "around"}}
COMPOSED_IN_PARTS |= {"fault": {*KINDS, Chaos.kind, "of"}, "scenario": set(COMPOSED)}
"""Keys that are written by functions of their own."""
SAMPLE = range(1, 251)


def keys_of(models: list[type[Model]]) -> set[str]:
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_of_the_language_can_be_drawn_and_no_other(section: str) -> None:
    assert keys_of(SECTIONS[section]) == KEYS[section].keys() | COMPOSED_IN_PARTS.get(section, set())


def test_every_section_is_of_some_model() -> None:
    assert KEYS.keys() == SECTIONS.keys()


@pytest.fixture(scope="module")
def drawn() -> list[dict[str, Any]]:
    """What many seeds come to."""
    return [parse_source(drawn_scenario(seed).text, "generated").data for seed in SAMPLE]


def more() -> Iterator[dict[str, Any]]:
    """A few more seeds where the sample lacks something: each change of the language draws other ones."""
    return (parse_source(drawn_scenario(seed).text, "generated").data for seed in range(SAMPLE.stop, 3 * SAMPLE.stop))


def words_in(value: object) -> Iterator[str]:
    """All keys, at any depth."""
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from words_in(inner)


@pytest.mark.nightly
def test_every_key_and_kind_occurs_in_what_is_drawn(drawn: list[dict[str, Any]]) -> None:
    wanted = {key for models in SECTIONS.values() for key in keys_of(models)} | {*WorkloadItem.kinds(), *KINDS}
    lacking = wanted - {"plugins", "programs", "command", "connections", "use"}
    for data in itertools.chain(drawn, more()):
        lacking -= set(words_in(data))
        if not lacking:
            return
    assert not lacking


def test_every_family_is_drawn_with_all_its_keys_and_two_tiers_most_often() -> None:
    dice = Random(1)
    families = [drawn_family(dice) for _ in range(400)]
    words = Counter(family.word for family in families)
    assert words.keys() == FAMILIES.keys()
    assert words.most_common(1)[0][0] == Clos2.word
    for word, made in FAMILIES.items():
        written = [written_keys(family) for family in families if family.word == word]
        assert {key for one in written for key in one} == {field.name for field in fields(cast(Any, made))}
        assert len({str(one) for one in written}) > 20


@pytest.mark.nightly
def test_every_metric_occurs_in_what_is_drawn(drawn: list[dict[str, Any]]) -> None:
    lacking = set(known_metrics())
    for data in itertools.chain(drawn, more()):
        lacking -= {name for name in lacking if re.search(rf"\b{name}\b", str(data.get("expect")))}
        if not lacking:
            return
    assert not lacking


def test_a_seed_is_always_the_same_scenario() -> None:
    assert drawn_scenario(3) == drawn_scenario(3)
    assert drawn_scenario(3) != drawn_scenario(4)


@pytest.mark.nightly
def test_scenarios_for_the_kernel_are_drawn_too() -> None:
    texts = [drawn_scenario(seed, kernel=True).text for seed in range(1, 41)]
    assert any("transport: tcp" in text for text in texts)
    assert all("world: kernel" in text for text in texts)


def test_a_failing_seed_leaves_the_scenario_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.generated.__main__.wrong_with", lambda *_: ["the books do not balance"])
    told = try_seed(7, failed=tmp_path)
    file = tmp_path / "generated-7.yaml"
    assert told == [f"seed 7: mrc-testbed run {file}", "the books do not balance"]
    assert file.read_text().startswith("# the books do not balance\nname: generated-7\n")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each seed, as many as are asked for."""
    if "seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("--generated-first")
        metafunc.parametrize("seed", range(first, first + metafunc.config.getoption("--generated-seeds")))


def test_a_random_scenario_keeps_the_books_heals_all_and_is_the_same_again(seed: int) -> None:
    wrong = try_seed(seed, failed=FAILED)
    assert not wrong, "\n".join(wrong)
