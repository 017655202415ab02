"""Answers to a case: what is kept, what is refused, and what they score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mrc_testbed.testbed.app.incident_scores import scores_of
from mrc_testbed.testbed.app.incidents import observe
from mrc_testbed.testbed.checks.answers import AnswersError
from mrc_testbed.testbed.cli import app
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.incidents.answering import (
    MOST_ANSWER_BYTES,
    answer_lines,
    answers_to,
    checked,
    keep_answers,
    names_in_fabric,
    read_answer_lines,
)
from mrc_testbed.testbed.incidents.case import CaseFolder, make_case
from mrc_testbed.testbed.incidents.draw import draw_case
from mrc_testbed.testbed.incidents.scoring import CaseScore, scored, truth_of
from mrc_testbed.testbed.incidents.tables import score_lines
from mrc_testbed.testbed.incidents.totals import IncidentHarm, ScoreTotals, by_name, harm_of_case
from mrc_testbed.testbed.rundir.files import RecordError, read_json

LASTS_S = 6.0
SILENT = "p0-t0-0"
BEGIN_S, END_S = 2.0, 4.0


def made(out: Path, faults: list[dict[str, Any]], kinds: tuple[str, ...]) -> CaseFolder:
    """A case with these faults, observed."""
    draft = draw_case(19, "calm", LASTS_S)
    data = {**draft.data, **({"faults": faults} if faults else {})}
    changed = type(draft)(draft.seed, draft.attempt, kinds, draft.busy, LASTS_S, data)
    case = make_case(changed, out)
    observe(case)
    return case


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> CaseFolder:
    faults = [{"at": "2s", "switch-silent": SILENT, "for": "2s", "name": "f0"}]
    return made(tmp_path_factory.mktemp("silent"), faults, ("t0-silent",))


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> CaseFolder:
    return made(tmp_path_factory.mktemp("calm"), [], ())


def line(t_s: float, *where: str, **more: Any) -> str:
    incidents = [{"where": list(where), **more}] if where else []
    return json.dumps({"t_s": t_s, "state": "incident" if where else "healthy", "incidents": incidents})


def score_of(case: CaseFolder, *lines: str) -> CaseScore:
    return scored(truth_of(case), "me", checked(case, "test", lines))


def test_answers_are_kept_once(silent: CaseFolder) -> None:
    keep_answers(silent, "first", "mine.jsonl", [line(0), "", line(2.5, SILENT)])
    assert [one.t_s for one in answers_to(silent)["first"]] == [0, 2.5]
    with pytest.raises(UsageError, match="first has answered before; take another --name, or remove that file"):
        keep_answers(silent, "first", "mine.jsonl", [line(0)])
    assert [one.by for one in scores_of([silent])] == ["first"]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["nix"], "a.jsonl:1:1: answer: is not JSON: Expecting value"),
        (["", line(0, "p0-t0-77")], "a.jsonl:2:1: incidents.0.where.0: there is no 'p0-t0-77' in this fabric"),
        ([line(1), line(1)], "a.jsonl:2:1: t_s: line 1 answers for 1 s; give one answer for a time"),
        ([line(1, SILENT, SILENT)], f"incidents.0.where.1: {SILENT} comes twice; incidents.0.where.0 has it"),
        ([line(1, SILENT, what="calm")], "incidents.0.what: unknown kind 'calm'"),
        ([line(1), line(7), ""], "a.jsonl:2:1: t_s: 7 s: the case ends at 6 s"),
        (['{"t_s": 1e999, "state": "unsure"}'], "t_s"),
        ([line(1, SILENT).replace("]}]", '], "since_s": NaN}]')], "since_s"),
        (["[" * 100_000], "answer: is not JSON"),
    ],
)
def test_what_is_wrong_with_an_answer_is_said_with_its_line_and_key(
    silent: CaseFolder, lines: list[str], says: str
) -> None:
    with pytest.raises(AnswersError) as wrong:
        keep_answers(silent, "bad", "a.jsonl", lines)
    assert says in str(wrong.value)
    assert "bad" not in answers_to(silent)


def test_names_files_and_cases_that_will_not_do(silent: CaseFolder, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--name \.\./x: 1 to 40 letters"):
        keep_answers(silent, "../x", "a.jsonl", [line(0)])
    with pytest.raises(UsageError, match=r"a\.jsonl: has no answer; write a line such as"):
        keep_answers(silent, "none", "a.jsonl", ["", " "])
    with pytest.raises(UsageError, match="a:2: is not UTF-8"):
        answer_lines("a", b"{}\n\xff")
    with pytest.raises(UsageError, match="a: has more than 16777216 bytes"):
        answer_lines("a", b" " * (MOST_ANSWER_BYTES + 1))
    with pytest.raises(UsageError, match="nowhere: cannot be read"):
        read_answer_lines(tmp_path / "nowhere")
    with pytest.raises(RecordError, match="is no plain file"):
        read_answer_lines(Path("/dev/zero"))
    drawn = make_case(draw_case(19, "calm", LASTS_S), tmp_path)
    with pytest.raises(UsageError, match="was not run yet"):
        names_in_fabric(drawn)
    (tmp_path / "elsewhere").mkdir()
    (drawn.folder / "answers").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RecordError, match="is a link"):
        answers_to(drawn)


def test_a_right_answer_scores_all(silent: CaseFolder) -> None:
    found = score_of(silent, line(0), line(2.5, SILENT, what="switch-silent", since_s=2.1), line(4.5))
    [incident] = found.incidents
    assert (incident.kind, incident.what, incident.asked, incident.share) == ("t0-silent", "switch-silent", True, 1.0)
    assert incident.after_ns == pytest.approx(0.5e9, abs=1e7)
    assert incident.since_ns == pytest.approx(0.1e9, abs=1e7)
    assert (incident.near, incident.what_right) == (True, True)
    assert (found.figures.falsely_accused, found.figures.alarms) == (0, 0)
    assert harm_of_case(found) is IncidentHarm.DEAD
    totals = ScoreTotals([found])
    assert (totals.precision, totals.recall, totals.f1) == (1, 1, 1)


def test_a_link_of_the_switch_is_near_and_another_switch_is_false(silent: CaseFolder) -> None:
    plan = truth_of(silent).record.plan
    own, other = plan.links_of(SILENT)[-1].name, "p1-t0-0"
    near = score_of(silent, line(0), line(2.5, own))
    assert (near.incidents[0].after_ns, near.incidents[0].near, near.figures.falsely_accused) == (None, True, 0)
    false = score_of(silent, line(0, other), line(2.5, other))
    assert (false.incidents[0].near, false.figures.falsely_accused, false.figures.alarms) == (False, 1, 1)
    assert ScoreTotals([near, false]).precision == 0.5
    assert ScoreTotals([near, false]).median_ns == float("inf")


def test_where_nothing_is_broken_silence_is_right(calm: CaseFolder) -> None:
    quiet, loud = score_of(calm, line(0)), score_of(calm, line(0), line(3, SILENT), line(4.5))
    assert (quiet.kinds, quiet.incidents, quiet.figures.balanced_accuracy) == (("calm",), (), 1.0)
    assert harm_of_case(quiet) is IncidentHarm.NONE
    assert (loud.figures.alarms, loud.figures.falsely_accused) == (1, 1)
    assert loud.figures.balanced_accuracy == pytest.approx(4.5 / LASTS_S)
    assert ScoreTotals([quiet, loud]).alarms_an_hour == pytest.approx(3600 / (2 * LASTS_S))
    assert ScoreTotals([quiet, loud]).recall is None


def test_a_direction_counts_where_the_link_itself_is_named(tmp_path: Path) -> None:
    link = "h0:p0-t0-0"
    faults = [{"at": "1s", "one-way": link, "direction": "up", "for": "3s", "name": "f0"}]
    case = made(tmp_path, faults, ("one-way",))
    ways = [score_of(case, line(2, link, direction=way)).incidents[0].direction for way in ("up", "down")]
    assert ways == [True, False]
    assert score_of(case, line(2, link)).incidents[0].direction is None


def test_cycles_of_a_flap_are_one_incident(tmp_path: Path) -> None:
    faults = [{"at": "1s", "period": "2s", "count": 2, "link-flap": "p0-t0-0:p0-t1-0", "name": "f0"}]
    case = made(tmp_path, faults, ("link-flap",))
    found = score_of(case, line(0), line(3.5, "p0-t0-0:p0-t1-0"), line(5))
    assert len(found.incidents) == 1
    assert found.incidents[0].after_ns == pytest.approx(2.5e9, abs=0.2e9), "from the first cycle"


def test_tables_are_narrow_and_json_has_the_same(silent: CaseFolder, calm: CaseFolder) -> None:
    scores = [score_of(silent, line(2.5, SILENT)), score_of(calm, line(0)), score_of(silent, line(0))]
    lines = [*score_lines(scores)]
    assert max(map(len, lines)) <= 80
    assert any("1 of 2 located" in text for text in lines)
    totals = by_name(scores)["me"].document()
    assert (totals["cases"], totals["asked"], totals["located"], totals["recall"]) == (3, 2, 1, 0.5)
    json.dumps([totals, *(one.document() for one in scores)], allow_nan=False)


def test_what_does_not_count_is_not_scored(tmp_path: Path) -> None:
    case = made(tmp_path, [], ())
    with pytest.raises(UsageError, match="has no answers"):
        scores_of([case])
    case.note({"believed": False})
    with pytest.raises(UsageError, match="the machine did not keep time"):
        truth_of(case)
    case.note({"believed": True, "without_effect": ["f0"]})
    with pytest.raises(UsageError, match="nothing came of what was drawn"):
        truth_of(case)
    assert read_json(case.truth / "truth.json")


def test_the_commands(silent: CaseFolder, tmp_path: Path) -> None:
    call = CliRunner().invoke
    mine = tmp_path / "mine.jsonl"
    mine.write_text(line(2.5, SILENT))
    kept = call(app, ["incident", "answer", str(silent.folder), str(mine), "--name", "by-file"])
    assert (kept.exit_code, "kept 1 answer by by-file" in kept.output) == (0, True)
    kept = call(app, ["incident", "answer", str(silent.folder), "-", "--name", "by-pipe"], input=line(2.5, SILENT))
    assert (kept.exit_code, "kept 1 answer by by-pipe" in kept.output) == (0, True)
    told = call(app, ["incident", "score", str(silent.folder), "--json"])
    assert json.loads(told.output)["totals"]["by-file"]["located"] == 1
