"""The preset `production`: all of it is in force, keys beside it prevail, and the time of hardware is not scaled."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import Scenario, load_scenario_text
from mrc_testbed.testbed.scenario.load.schema import scenario_json_schema
from mrc_testbed.testbed.scenario.model.presets import ENDPOINT_VALUES

FILE = "name: x\nworkload:\n  - permutation: {for: 2s}\n  - write: {from: h0, to: h5, qps: 3, for: 2s}\n"
WORD = "endpoint: production\n"
PRODUCTION = {
    "preset": "production",
    "mpr": "4",
    "timeout": "1.073741824s",
    "exponential_tries": "25",
    "reinfer": "false",
    "dscp.data": "1",
    "dscp.retransmission": "1",
    "dscp.control": "3",
}


def load(text: str, *changes: str) -> Scenario:
    return load_scenario_text(FILE + text, overrides=changes)


def qps(scenario: Scenario) -> list[int]:
    return [flow.qps for flow in scenario.flows.flows]


def test_a_word_a_key_and_a_change_mean_the_same() -> None:
    for scenario in (load(WORD), load("endpoint: {preset: production}\n"), load("", "endpoint.preset=production")):
        assert scenario.endpoint.changed() == PRODUCTION
        assert qps(scenario) == [2] * 8 + [3], "two QPs where an entry does not say how many"
        assert scenario.endpoint.settings()["timeout"] == 20
        again = load_scenario_text(scenario.dump_yaml())
        assert (again.endpoint, qps(again)) == (scenario.endpoint, qps(scenario))


def test_keys_beside_the_preset_prevail() -> None:
    changed = load("endpoint: {preset: production, mpr: 8, timeout: auto, dscp: {control: 5}}\nqps: 1\n")
    assert changed.endpoint.changed() == {
        key: value for key, value in PRODUCTION.items() if key not in ("mpr", "timeout")
    } | {"dscp.control": "5"}
    assert qps(changed) == [1] * 9


def test_other_transports_keep_what_is_theirs() -> None:
    roce = load(WORD, "transport=roce")
    assert qps(roce) == [1] * 8 + [3]
    assert roce.dscp_marks.control == 46
    assert qps(load(WORD, "transport=mrc-hashed")) == [2] * 8 + [3]


def test_steps_have_two_qps_between_ranks() -> None:
    step = "[{allreduce: {size: 1MiB}}, {sendrecv: {size: 1MiB, qps: 5}}]"
    text = f"name: x\nworkload: [{{train: {{steps: 2, step: {step}}}}}]\n"
    usual, production = load_scenario_text(text), load_scenario_text(text + WORD)
    assert [_step_qps(scenario) for scenario in (usual, production)] == [[1, 5], [2, 5]]


def _step_qps(scenario: Scenario) -> list[int]:
    train = scenario.workload[0].train
    assert train
    return [next(iter(part.model_dump(exclude_none=True).values()))["qps"] for part in train.step]


def test_the_time_of_hardware_is_not_scaled_and_one_of_the_file_is() -> None:
    real = load(WORD + "world: virtual\nscale: 8000\n")
    assert real.fabric.rtt_ns == 5_000
    assert real.endpoint.timeout_ns == 1024 << 20
    written = load("endpoint: {preset: production, timeout: 80ms}\nworld: virtual\nscale: 8000\n")
    assert written.endpoint.timeout_ns == 10_000
    # The file's own 1.07 s is a time of the file.
    assert load("endpoint: {timeout: 1073741824ns}\nworld: virtual\nscale: 8000\n").endpoint.timeout_ns == 134_218


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("endpoint: prodution", "endpoint: unknown preset 'prodution'; did you mean 'production'"),
        ("endpoint: {preset: fast}", r"endpoint\.preset: must be 'testbed' or 'production'"),
        ("endpoint: 3", "endpoint: must be a mapping"),
        ("endpoint: {preset: production, dscp: 3}", r"endpoint\.dscp: must be a mapping"),
    ],
)
def test_what_is_no_preset_is_refused(text: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        load(text)


def test_the_schema_takes_a_word() -> None:
    endpoint = scenario_json_schema()["properties"]["endpoint"]
    assert endpoint["anyOf"][0] == {"enum": list(ENDPOINT_VALUES)}
    assert endpoint["anyOf"][1]["$ref"].endswith("/EndpointSettings")
