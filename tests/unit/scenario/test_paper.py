"""The key `paper` of a scenario, and what is wrong with it."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.errors import ScenarioError
from mrc_testbed.testbed.scenario import load_scenario_text, scenario_json_schema

TEXT = """\
name: small
workload:
  - train: {steps: 10, compute: 100ms, allreduce: 4MiB}
expect: [qp_errors == 0, steps_done == 10]
paper: {figure: "12, 13", reports: nobody notices, shows: [1, 0]}
"""


def mistakes(old: str, new: str) -> list[str]:
    assert old in TEXT
    with pytest.raises(ScenarioError) as caught:
        load_scenario_text(TEXT.replace(old, new), "s.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_a_scenario_says_which_figure_it_repeats() -> None:
    paper = load_scenario_text(TEXT).paper
    assert paper is not None
    assert (paper.figure, paper.reports, paper.shows) == ("12, 13", "nobody notices", (1, 0))
    assert load_scenario_text(TEXT.replace("paper:", "#")).paper is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"12, 13"', "14", 's.yaml:5:17: paper.figure: must be text; write it in quotes, as in "14"'),
        ('"12, 13"', "4.2", 'must be text; write it in quotes, as in "4.2"'),
        ('"12, 13"', "[9a]", "must be the figures in one line of text"),
        ('"12, 13"', '" "', "must be the figures in one line of text"),
        ('"12, 13"', "9" * 24 + "a", "paper.figure: must be at most 24 characters, such as 9a; this has 25"),
        ("nobody notices", '"a\\nb"', "s.yaml:5:37: paper.reports: must be one line of text"),
        ("nobody notices", "", "paper.reports: must be one line of text"),
        ("[1, 0]", "[]", "paper.shows: must name at least one of `expect`"),
        ("[1, 0]", "1", "paper.shows: must be a list, such as [0]; got 1"),
        ("[1, 0]", "[0, 1, 0]", "paper.shows: duplicate index 0"),
        ("[1, 0]", "[-1]", "5:60: paper.shows.0: must be at least 0; got -1"),
        ("[1, 0]", "[true]", "paper.shows.0: must be a whole number; got true"),
        ("[1, 0]", "[0, 2]", "s.yaml:5:63: paper.shows.1: there is no item 2 in `expect`; the last one is 1"),
        ("expect: [qp_errors == 0, steps_done == 10]", "", "there is no item 1 in `expect`; it is empty"),
        (", shows: [1, 0]", "", "5:1: paper: the key 'shows' is missing; write for example `shows: [0]`"),
        ("shows", "show", "paper.show: unknown key 'show'; did you mean 'shows'?"),
    ],
)
def test_a_mistake_has_its_place(old: str, new: str, says: str) -> None:
    assert any(says in line for line in mistakes(old, new))


def test_what_the_paper_reports_of_others_is_of_variants_that_exist() -> None:
    found = mistakes("shows: [1, 0]", "shows: [1, 0], beside: {roce-l: worse, roce-16: better}")
    assert [line.partition(": ")[2] for line in found] == [
        "paper.beside.roce-l: there is no variant 'roce-l'; did you mean 'roce-1'?"
    ]
    own = "}\nvariants: {mrc: {}, hash: {transport: roce}}\n"
    (mistake,) = mistakes("shows: [1, 0]}", "shows: [1, 0], beside: {roce: worse, hash: better}" + own)
    assert "there is no variant 'roce'" in mistake


def test_an_index_is_counted_in_a_list_with_other_mistakes() -> None:
    """An expectation that cannot be read is there all the same."""
    found = mistakes("steps_done == 10", "steps_dne == 10")
    assert [line.split(": ")[1] for line in found] == ["expect.1"]


def test_no_index_is_blamed_for_what_is_no_list() -> None:
    found = mistakes("[qp_errors == 0, steps_done == 10]", "qp_errors")
    assert [line.split(": ")[1] for line in found] == ["expect"]


def test_the_json_schema_knows_it() -> None:
    properties = scenario_json_schema()["$defs"]["Paper"]["properties"]
    assert list(properties) == ["figure", "reports", "source", "beside", "shows"]
    assert properties["shows"]["minItems"] == 1
