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
    assert set(mapper.evidence) == {Witness.ENDPOINTS, Witness.PROBES}
    assert (mapper.deny, mapper.acts, mapper.owners) == (DenyPolicy.NOTHING, False, 2)
    assert mapper.period_ns(20_000_000) == 200_000_000


def test_its_times_follow_the_scale() -> None:
    mapper = load("mapper: {hold: 4s, period: 800ms}\nworld: virtual\nscale: 100").mapper
    assert mapper is not None
    assert mapper.hold_ns == 40_000_000
    assert mapper.period_ns(400_000) == 8_000_000


def test_a_period_in_round_trips_follows_those_of_the_fabric() -> None:
    scenario = load("mapper: {period: 7.5 rtt}\nworld: virtual\nscale: 100")
    assert scenario.mapper is not None
    assert scenario.shape().rtt_ns == 400_000
    assert scenario.mapper.period_ns(scenario.shape().rtt_ns) == 3_000_000


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
        ("mapper: {period: 1ms}", "mapper.period", r"given up after 4: at least 5 rtt \(200ms\)"),
        ("mapper: {period: 4 rtt}", "mapper.period", r"at least 5 rtt \(200ms\)"),
        ("mapper: {period: often}", "mapper.period", "'often' is no period; write round trips or a time"),
        ("mapper: {}\nfabric: {rtt: 0s}", "mapper.period", "more than 0, such as 200ms, where fabric.rtt is 0"),
        ("mapper: {owners: 5}", "mapper.owners", "at most 4, the hosts below a T0"),
        ("mapper: {owners: 0}", "mapper.owners", "at least 1"),
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
    assert all("sends no probes" in line for line in found)
    assert all(word in line for word, line in zip(says, found, strict=True))


@pytest.mark.parametrize(
    "line", ["located.p100 <= 2s", "cleared.p50 <= 2s", "map_precision == 1", "falsely_accused == 0"]
)
def test_figures_of_a_mapper_need_one(line: str) -> None:
    with pytest.raises(ScenarioError, match=r"needs `mapper`; of a run without one `mrc-testbed map RUN`"):
        load(f"expect: [{line}]")
    assert load(f"mapper: {{}}\nexpect: [{line}]").expect


def test_a_line_for_the_cell_that_has_one_needs_none_in_the_others() -> None:
    text = "variants: {alone: {}, mapped: {mapper: {}}}\nexpect: [{mapped: map_precision == 1}]"
    assert load(text).variants
