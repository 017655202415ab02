"""A program that is silent, floods, lies or dies has one reason, in bounded time, and nothing of it is left."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from mrc_testbed.testbed.interop.program import ContractProgram
from mrc_testbed.testbed.interop.results import StepMark
from tests.left import alive
from tests.unit.interop.judged import HERE, judged, python

ANSWER_S = 0.7
HELLOS = {
    "silent": "gave no line for its first line within 0.7 s",
    "flood": "its first line is longer than 4 MiB",
    "flood stderr": "gave no line for the answer to `step` within 0.7 s; standard error: xxx",
    "no json": "not JSON: hello world",
    "deep": "JSON of more than 64 brackets within brackets: [[[",
    "no object": "not a JSON object: [1, 2]",
    "future": 'its first line must have "contract": 1, not 2',
    "nameless": 'its first line must have "name", a text',
    "exits": "ended before its first line; exit status 3; standard error: cannot find libfoo.so",
    "deaf": "gave no line for the answer to `step` within 0.7 s",
    "unasked": 'the answer to `step` must have "id": 1 and "ok", not 7',
    "refuses": "refused `step`: not today",
}
TURNS = {
    '{"transmit": [[1, 0, 9, 0, "00000000000000000000000000000000"]]}': "path (0, 9) is none that it was given",
    '{"transmit": [[5, 0, 0, 0, "00000000000000000000000000000000"]]}': "peer 5 is none that it was given",
    '{"transmit": [[1, 0, 0, 0, "00"]]}': "1 B of class 0 are no packet",
    '{"transmit": [[1, 0, 0, 0, "zz"]]}': "`transmit`: not hex: 'zz'",
    '{"transmit": [[1, 0, 0, -1, ""]]}': "`transmit` must be [[peer, plane, uplink, class, hex], ...]",
    '{"transmit": 5}': "`transmit` must be a list",
    json.dumps({"transmit": [[1, 0, 0, 0, "00" * 16]] * 65}): "a turn has 65 packets in `transmit`, more than 64",
    '{"place": [[99, 0, "00"]]}': "QP 99 is none that it was given",
    '{"place": [[16]]}': "`place` must be [[qpn, offset, hex], ...]",
    '{"events": [{"event": "completed", "qpn": 16, "wr_id": 7}]}': "completed write 7 of QP 16, which is not under way",
    '{"events": [{"event": "completed"}]}': "the event completed must have qpn, a whole number",
    '{"events": [{"event": "party"}]}': "an event must be one of completed, immediate, qp_error, ev_state, not 'party'",
    '{"events": ["x"]}': "an event must be one of",
    '{"timeout_ns": 1.5}': "`timeout_ns` must be a whole number or null, not 1.5",
    '{"ok": 1}': 'the answer to `turn` must have "id"',
}
"""What an answer to a turn has, and what is said of it."""


@pytest.mark.parametrize("mode", HELLOS)
def test_one_that_does_not_begin_well(tmp_path: Path, mode: str) -> None:
    began = time.monotonic()
    result = judged(tmp_path, python("hostile.py", mode), 1, answer_s=ANSWER_S)
    assert result.mark is StepMark.FAIL
    assert HELLOS[mode] in result.reasons[0], result.reasons
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("fields", TURNS)
def test_one_that_lies(tmp_path: Path, fields: str) -> None:
    result = judged(tmp_path, python("hostile.py", fields), 3, answer_s=30)
    assert result.mark is StepMark.FAIL
    assert TURNS[fields] in result.reasons[0], result.reasons


def test_one_that_dies_in_a_run_has_its_last_words(tmp_path: Path) -> None:
    result = judged(tmp_path, python("hostile.py", "dies"), 3, answer_s=30)
    assert result.mark is StepMark.FAIL
    assert (
        "ended before the answer to `turn`; killed by signal 6; standard error: assertion failed" in result.reasons[0]
    )
    assert "\x1b" not in result.reasons[0]


def test_what_it_cannot_do_is_no_fail_and_no_pass(tmp_path: Path) -> None:
    result = judged(tmp_path, python("hostile.py", "unsupported"), 3)
    assert (result.mark, result.reasons) == (StepMark.NOT_APPLICABLE, ("`step`: no streams yet",))


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    result = judged(tmp_path, ("./nothing-here",), 1)
    assert result.reasons == ("cannot start ./nothing-here: No such file or directory",)


def test_nothing_of_it_is_left(tmp_path: Path) -> None:
    mark = f"86{os.getpid()}11"
    command = ("sh", "-c", f'echo \'{{"contract": 1, "name": "x"}}\'; setsid sleep {mark} & setsid sleep {mark}')
    program = ContractProgram(command, HERE, tmp_path / "log", ANSWER_S)
    program.hello()
    program.close()
    assert alive(mark) == []


def test_its_log_is_kept_short(tmp_path: Path) -> None:
    judged(tmp_path, python("hostile.py", "unasked"), 1, answer_s=ANSWER_S)
    log = (tmp_path / "subject" / "lines" / "logs" / "contract.log").read_text()
    assert log.splitlines()[0] == '< {"contract": 1, "name": "hostile"}'
    assert os.path.getsize(tmp_path / "subject" / "lines" / "logs" / "contract.log") < 2000
