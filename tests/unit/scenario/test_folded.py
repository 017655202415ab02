"""Values that a scenario has on several lines (YAML 1.2, 6.5 and 8.1): they mean one line, and mistakes have their
place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.scenario.text.yaml_text import parse_source

START = "name: folded\nfabric: {}\nworkload:\n  - train: {steps: 10, compute: 100ms, allreduce: 4MiB}\n"
LAST_LINE = len(START.splitlines()) + 4
FORMS = {
    "folded": ">-\n    step_time.p100\n    <= 30s{}\n",
    "plain": "step_time.p100\n    \n    <= 30s{}\n",
    "quoted": '"step_time.p100\n    \n    <= 30s{}"\n',
    "literal": "|-\n    step_time.p100\n    <= 30s{}\n",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_expectation_may_have_several_lines(form: str) -> None:
    text = START + f"about: >-\n  one sentence that\n  goes on\nexpect:\n  - {form.format('')}"
    scenario = load_scenario_text(text)
    assert scenario.about == "one sentence that goes on"
    assert scenario.expect[0].text.split() == ["step_time.p100", "<=", "30s"]
    assert "\a" not in scenario.dump_yaml()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_mistake_on_its_second_line_has_its_place(form: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        load_scenario_text(START + f"expect:\n  - {form.format(' blah')}")
    (problem,) = refused.value.problems
    assert (problem.line, problem.column) == (LAST_LINE, len("    <= 30s ") + 1)


def test_a_change_keeps_what_folded_text_means() -> None:
    text = START + "about: >-\n  one sentence that\n  goes on\n"
    changed = load_scenario_text(text, overrides=["seed=3"])
    assert load_scenario_text(changed.dump_yaml()).about == "one sentence that goes on"
    assert "\a" not in changed.dump_yaml()


@given(st.lists(st.from_regex("[a-z]{1,5}", fullmatch=True), min_size=1, max_size=9), st.data())
def test_folding_means_a_blank(words: list[str], data: st.DataObject) -> None:
    breaks = [data.draw(st.sampled_from([" ", "\n  "])) for _ in words[1:]]
    folded = words[0] + "".join(gap + word for gap, word in zip(breaks, words[1:], strict=True))
    for mark in ("a: >-\n  ", "a:\n  "):
        source = parse_source(mark + folded, "x")
        assert source.data == {"a": " ".join(words)} or source.data["a"] in (None, True, False)
