"""The section `mapper` of a scenario: what it takes, and one line with its place for what it does not."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.mapper.evidence import Witness
from mrc_testbed.testbed.mapper.policy import DenyPolicy
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.rules.warnings import scenario_warnings

FILE = "name: x\nworkload: [{permutation: {for: 4s}}]\n"


def load(text: str) -> Scenario:
    return load_scenario_text(FILE + text)


def test_without_the_section_there_is_none() -> None:
    assert load("").mapper is None


def test_an_empty_section_looks_and_does_nothing() -> None:
    mapper = load("mapper: {}").mapper
    assert mapper is not None
    assert (mapper.evidence, mapper.deny, mapper.acts) == ((Witness.ENDPOINTS,), DenyPolicy.NOTHING, False)


def test_its_times_follow_the_scale() -> None:
    mapper = load("mapper: {hold: 4s}\nworld: virtual\nscale: 100").mapper
    assert mapper is not None
    assert mapper.hold_ns == 40_000_000


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        ("mapper: {deny: everything}", "mapper.deny", "nothing, lossy NIC links, NIC links, all"),
        ("mapper: {deny: lossy NIC link}", "mapper.deny", "did you mean 'lossy NIC links'"),
        ("mapper: {evidence: []}", "mapper.evidence", "at least one kind of evidence"),
        ("mapper: {evidence: [endpoints, endpoints]}", "mapper.evidence", "comes twice"),
        ("mapper: {evidence: [gossip]}", "mapper.evidence.0", "unknown kind of evidence 'gossip'"),
        ("mapper: {above: 101%}", "mapper.above", "above 100%"),
        ("mapper: {hold: 0s}", "mapper.hold", "more than 0"),
        ("mapper:", "mapper", "has no value"),
        ("mapper: {deny: all}\nfabric: {planes: 1}", "mapper.deny", "would leave hosts no path"),
        ("mapper: {deny: all}\nendpoint: {denylist: [p1]}", "mapper.deny", "endpoint.denylist denies paths too"),
        (
            "mapper: {deny: all}\nfaults: [{at: 1s, deny: p1, for: 1s, name: hand}]",
            "mapper.deny",
            "the fault hand denies paths too",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line_with_its_place(text: str, path: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why) as caught:
        load(text)
    (problem,) = caught.value.problems
    assert problem.path == path


def test_one_that_denies_nothing_may_stand_beside_a_denial() -> None:
    assert load("mapper: {}\nendpoint: {denylist: [p1]}").mapper is not None


@pytest.mark.parametrize(
    ("transport", "says"),
    [("mrc", []), ("mrc-hashed", ["the planes that lose packets"]), ("roce", ["ports without carrier"])],
)
def test_where_hosts_choose_no_paths_it_is_said_what_is_seen(transport: str, says: list[str]) -> None:
    found = [line for line in scenario_warnings(load(f"transport: {transport}\nmapper: {{}}")) if "mapper" in line]
    assert len(found) == len(says)
    assert all(word in line for word, line in zip(says, found, strict=True))
