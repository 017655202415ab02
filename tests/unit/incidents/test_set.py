"""A set of cases: the same to the byte however many run at once, answered by the mapper, and scored by group."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrc_testbed.testbed.app import incident_set
from mrc_testbed.testbed.app.incident_scores import scores_of
from mrc_testbed.testbed.app.incident_set import LOCK_FILE, MAPPER, SCORES_FILE, SetScore, score_set
from mrc_testbed.testbed.app.incidents import observe
from mrc_testbed.testbed.cli import app
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.incidents.case import case_at
from mrc_testbed.testbed.incidents.tables import group_lines
from mrc_testbed.testbed.incidents.totals import IncidentHarm, by_harm, by_kind
from mrc_testbed.testbed.rundir.lock import locked

SEEDS = (1, 5)
"""An entry that is missing, and a busy network in which nothing is broken."""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[SetScore]]:
    folder = tmp_path_factory.mktemp("set")
    return folder, score_set(folder, SEEDS, 1, lambda one: None)


@pytest.mark.nightly
def test_a_set_is_the_same_to_the_byte(first: tuple[Path, list[SetScore]], tmp_path: Path) -> None:
    seen: list[int] = []
    score_set(tmp_path / "again", SEEDS, 2, lambda one: seen.append(one.seed))
    assert seen == [*SEEDS]
    files = sorted(path.relative_to(first[0]) for path in first[0].glob("[0-9a-f]*") if path.suffix != ".truth")
    assert len(files) == len(SEEDS)
    for name in (Path(SCORES_FILE), *(name / "answers" / f"{MAPPER}.jsonl" for name in files)):
        assert (first[0] / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_what_is_missing_is_located_and_what_is_busy_accused_of_nothing(first: tuple[Path, list[SetScore]]) -> None:
    scores = [one.score for one in first[1]]
    assert [*by_kind(scores)] == ["entry-missing", "busy"]
    groups = by_harm(scores)
    assert [*groups] == [IncidentHarm.DEAD.value, IncidentHarm.NONE.value]
    assert (groups["dead"].recall, groups["dead"].precision) == (1, 1)
    assert groups["nothing is broken"].document()["accusations"] == 0
    assert max(map(len, group_lines("harm", groups))) <= 80
    told = json.loads((first[0] / SCORES_FILE).read_text())
    assert [one["seed"] for one in told["cases"]] == [*SEEDS]
    assert told["totals"]["located"] == 1


@pytest.mark.nightly
def test_its_cases_can_be_scored_again(first: tuple[Path, list[SetScore]]) -> None:
    cases = [case_at(first[0] / one.score.case) for one in first[1]]
    assert [one.document() for one in scores_of(cases)] == [one.score.document() for one in first[1]]


def test_a_set_goes_on_where_it_was_broken_off(
    first: tuple[Path, list[SetScore]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole run is not repeated, half a run is; more seeds may come."""
    folder = tmp_path / "set"
    shutil.copytree(first[0], folder)
    half = folder / first[1][1].score.case
    shutil.rmtree(half / "answers")
    (folder / SCORES_FILE).unlink()
    ran: list[str] = []
    monkeypatch.setattr(incident_set, "observe", lambda case: (ran.append(case.id), observe(case))[1])
    score_set(folder, SEEDS, 1, lambda one: None)
    assert ran == [half.name]
    assert (folder / SCORES_FILE).read_bytes() == (first[0] / SCORES_FILE).read_bytes()
    assert not (folder / LOCK_FILE).exists()


def test_a_folder_with_something_else_is_refused(first: tuple[Path, list[SetScore]], tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(UsageError, match="is there already; name another folder"):
        score_set(tmp_path, SEEDS, 1, lambda one: None)
    with pytest.raises(UsageError, match="has a set of kind None, not 'calm'; name another folder"):
        score_set(first[0], SEEDS, 1, lambda one: None, "calm")
    with locked(first[0] / LOCK_FILE), pytest.raises(UsageError, match="another `incident set` is at work there"):
        score_set(first[0], SEEDS, 1, lambda one: None)


@pytest.mark.nightly
def test_the_command(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["incident", "set", str(tmp_path / "s"), "--count", "1", "--kind", "calm"])
    assert done.exit_code == 0, done.output
    assert "mapper: 1 case" in done.output
    assert "nothing is broken" in done.output
