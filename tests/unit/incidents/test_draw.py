"""Cases of incidents as they are drawn: by seed alone, of all kinds, with settings that tell nothing."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.incidents.case import CaseFolder, case_at, make_case
from mrc_testbed.testbed.incidents.dice import Dice
from mrc_testbed.testbed.incidents.draw import KIND_WORDS, NONE, TWO, draw_case
from mrc_testbed.testbed.incidents.kinds import INCIDENT_KINDS, WHAT
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.scenario.faults import KINDS

SEEDS = range(120)


def test_a_seed_is_always_the_same_case() -> None:
    assert draw_case(5) == draw_case(5)
    assert draw_case(5).id != draw_case(6).id


def test_there_are_twenty_kinds_and_each_can_be_asked_for() -> None:
    assert len(INCIDENT_KINDS) >= 20
    assert len(WHAT) >= 20
    assert set(WHAT) <= set(KINDS)
    for word in KIND_WORDS:
        draft = draw_case(9, word)
        faults = load_scenario_text(draft.text).occurrences
        assert draft.kinds == ((word,) if word in INCIDENT_KINDS else ())
        assert {one.kind for one in faults} == ({INCIDENT_KINDS[word].fault} if draft.kinds else set())


def test_the_page_has_a_row_for_each_kind() -> None:
    page = (Path(__file__).parents[3] / "docs/incidents.md").read_text(encoding="utf-8")
    rows = [
        tuple(cell.strip(" `") for cell in row) for row in re.findall(r"^\|([^|]*)\|([^|]*)\|([^|]*)\|$", page, re.M)
    ]
    for kind in INCIDENT_KINDS.values():
        assert (kind.word, kind.fault, kind.about) in rows


@pytest.mark.nightly
def test_a_quarter_has_no_incident_and_a_tenth_has_two() -> None:
    counts = Counter(len(draw_case(seed).kinds) for seed in SEEDS)
    for number, chance in ((0, NONE), (2, TWO)):
        expected = chance * len(SEEDS)
        assert abs(counts[number] - expected) < 4 * (expected * (1 - chance)) ** 0.5


@pytest.mark.parametrize("seeds", [SEEDS[:30], SEEDS[30:]], ids=["first", "others"])
@pytest.mark.nightly(keep=1)
def test_incidents_are_on_while_they_are_observed_and_two_overlap(seeds: range) -> None:
    for seed in seeds:
        draft = draw_case(seed)
        scenario = load_scenario_text(draft.text)
        begins: dict[str, int] = {}
        for one in scenario.occurrences:
            assert 0.1e9 * draft.lasts_s < one.begin_ns < 1.06e9 * draft.lasts_s
            begins.setdefault(one.fault, one.begin_ns)
        assert all(begin < 0.75e9 * draft.lasts_s for begin in begins.values())


def test_the_setting_does_not_depend_on_what_breaks() -> None:
    """Else a fabric or a workload would tell. Those of a kind that needs queues have an incast, and are asked for."""
    drawn = draw_case(17)
    for word in ("link-down", "host-pause", "deny"):
        assert draw_case(17, word).public == drawn.public
    later = draw_case(17, "link-down", attempt=7)
    assert later.public == drawn.public
    assert later.text != draw_case(17, "link-down").text


def test_what_is_public_has_neither_seed_nor_faults() -> None:
    draft = draw_case(17, "link-loss")
    assert set(draft.public) == {"fabric", "mapper", "workload"}
    assert str(draft.data["seed"]) not in json.dumps(draft.public)


def test_an_unknown_kind_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="--kind link-los: no such kind; did you mean 'link-loss'"):
        draw_case(1, "link-los")


def test_magnitudes_are_log_uniform() -> None:
    dice = Dice("test")
    drawn = [dice.magnitude(0.001, 0.1) for _ in range(2000)]
    assert min(drawn) >= 0.001
    assert max(drawn) <= 0.1
    assert 900 < sum(1 for one in drawn if one < 0.01) < 1100


def test_a_case_has_its_truth_beside_it_for_its_runner_alone(tmp_path: Path) -> None:
    draft = draw_case(3)
    case = make_case(draft, tmp_path)
    assert case.folder == tmp_path / draft.id
    assert case.truth.stat().st_mode & 0o777 == 0o700
    assert case.known()["seed"] == 3
    assert {path.name for path in case.folder.iterdir()} == {"case.json"}
    assert case_at(case.folder) == case
    with pytest.raises(UsageError, match="is there already; choose another folder with --out, or another seed"):
        make_case(draft, tmp_path)


def test_what_is_no_case_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no case; `incident draw SEED` makes one"):
        case_at(tmp_path)
    case = make_case(draw_case(3), tmp_path)
    with pytest.raises(UsageError, match=f"is the truth of a case; name the case, {case.id}"):
        case_at(case.truth)
    with pytest.raises(UsageError, match="was not run yet; `incident observe"):
        CaseFolder(case.folder).run_folder()
