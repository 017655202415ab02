"""What the mapper says of a folder: of a run with its truth, or of a case without."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mrc_testbed.testbed.checks.answers import Answer
from mrc_testbed.testbed.checks.fabric_map import fabric_map, map_answers, score_answers
from mrc_testbed.testbed.checks.judge import VERDICT_FILE, read_verdict
from mrc_testbed.testbed.checks.locating import LocatingScore
from mrc_testbed.testbed.checks.path_evidence import heard_alone
from mrc_testbed.testbed.checks.record import RunRecord, load_record
from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.incidents.case import CASE_FILE, case_at
from mrc_testbed.testbed.incidents.observed import observed_record
from mrc_testbed.testbed.mapper.evidence import Witness
from mrc_testbed.testbed.rundir.files import RecordError, any_values
from mrc_testbed.testbed.rundir.results import run_folder


@dataclass(frozen=True, slots=True)
class MappedFolder:
    """A folder with what the mapper says of it. `score` None: the folder has no truth. `believed`: False where the
    machine did not keep time, so that no answer counts."""

    name: str
    record: RunRecord
    answers: list[Answer]
    score: LocatingScore | None
    believed: bool


def map_folder(run: Path, out: Path, witness: Witness | None = None) -> MappedFolder:
    """Of a run, as named by `run_folder`, or of the folder of a case. `witness`: who alone is heard; None: as its
    mapper, or endpoints. Raises UsageError where there is none, or where its workload never began; RecordError for a
    damaged one."""
    is_case = (run / CASE_FILE).is_file()
    folder = case_at(run).folder if is_case else run_folder(run, out)
    with any_values(folder):
        record = observed_record(case_at(run)) if is_case else load_record(folder)
        if gone := sorted({"events.jsonl", "history.jsonl"}.intersection(record.missing)):
            raise RecordError(folder / gone[0], "is missing, and no run lacks it: the folder is damaged; run it again")
        if record.start_ns is None:
            raise UsageError(f"{folder}: the run ended before its workload, so nothing was seen; name another run")
        if witness is Witness.PROBES and not record.probes:
            raise UsageError(f"{folder}: hosts sent no probes in it; a scenario with `mapper` lets them")
        record = record if witness is None else heard_alone(record, witness)
        fabric_map(record)
        answers = map_answers(record)
        if is_case:
            return MappedFolder(folder.name, record, answers, None, True)
        return MappedFolder(folder.name, record, answers, score_answers(record, answers), _believed(folder))


def _believed(folder: Path) -> bool:
    """A run that was not judged yet is believed."""
    return not (folder / VERDICT_FILE).exists() or read_verdict(folder).fidelity.ok
