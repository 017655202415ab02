"""The conversation with a program: what it may ask, what it is told, and what is wrong with a line."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mrc_testbed.testbed.app.incident_scores import scores_of
from mrc_testbed.testbed.app.incident_serve import AnswerSheet, ProgramCalled, converse, serve, user_called
from mrc_testbed.testbed.app.incidents import observe
from mrc_testbed.testbed.cli import app
from mrc_testbed.testbed.errors import RunError, UsageError
from mrc_testbed.testbed.incidents.answering import MOST_ANSWER_BYTES, answers_to
from mrc_testbed.testbed.incidents.case import CaseFolder, make_case
from mrc_testbed.testbed.incidents.draw import draw_case
from mrc_testbed.testbed.incidents.observer import Observer
from mrc_testbed.testbed.incidents.protocol import BadRequest, Conversation, LookBudget
from mrc_testbed.testbed.rundir.files import RecordError

LASTS_S = 4.0
TOOLS = "topology, now, wait, host, switch, link, events, probes, answer"


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> CaseFolder:
    made = make_case(draw_case(19, "t0-silent", LASTS_S), tmp_path_factory.mktemp("cases"))
    observe(made)
    return made


class Talk:
    """A conversation whose answers are kept."""

    def __init__(self, case: CaseFolder, budget: LookBudget | None = None) -> None:
        self.answers: list[tuple[float, Mapping[str, Any]]] = []
        self.conversation = Conversation(
            Observer(case), lambda answer, t_s: self.answers.append((t_s, answer)), budget or LookBudget()
        )

    def ask(self, tool: str, **more: Any) -> dict[str, Any]:
        return json.loads(self.conversation.reply(json.dumps({"tool": tool, **more})))


def test_only_wait_moves_the_clock_and_nothing_later_is_told(case: CaseFolder) -> None:
    talk = Talk(case)
    assert talk.ask("now") == {"ok": True, "now_s": 0.0, "left_s": LASTS_S, "over": False}
    assert talk.ask("events", since_s=0)["events"] == []
    talk.ask("topology")
    assert talk.ask("now")["now_s"] == 0.0
    waited = talk.ask("wait", s=1.5)
    assert (waited["now_s"], waited["left_s"]) == (1.5, 2.5)
    host, link = talk.ask("host", host="h0"), talk.ask("link", link="h0:p0-t0-0", s=9)
    assert 1.2 < host["t_s"] <= 1.5
    assert host["counters"]["data_sent"] > 0
    assert [row["t_s"] for row in link["rows"]] == sorted(row["t_s"] for row in link["rows"])
    assert link["rows"][-1]["t_s"] <= 1.5
    early = talk.ask("events", since_s=0)["events"]
    assert len(early) == waited["events"]
    assert talk.ask("probes", since_s=0)["sent"] > 20
    assert talk.ask("probes", since_s=1.5) == {"ok": True, "sent": 0, "lossy": []}
    talk.ask("wait", s=99)
    lossy = talk.ask("probes", since_s=1.5)["lossy"]
    assert len({row["links"][0].partition(":")[2] for row in lossy}) == 1, "all go by the T0"
    assert all(0 < row["lost"] <= row["sent"] for row in lossy)
    assert talk.ask("now")["over"] is True
    assert len(talk.ask("events", since_s=0)["events"]) > len(early), "a T0 has died"
    assert talk.ask("events", since_s=LASTS_S)["events"] == []


def test_a_switch_has_its_ports_and_a_link_both_ends(case: CaseFolder) -> None:
    talk = Talk(case)
    talk.ask("wait", s=2)
    ports = talk.ask("switch", switch="p0-t0-0")["ports"]
    assert ports["down0"]["peer"] == "h0"
    assert {"rx_bytes", "tx_packets", "tx_drops"} <= ports["down0"].keys()
    assert not {"lost", "corrupted"} & ports["down0"].keys()
    row = talk.ask("link", link="h0:p0-t0-0", s=1)["rows"][0]
    assert row["near"]["tx_packets"] >= row["far"]["rx_packets"] > 0


@pytest.mark.parametrize(
    ("file", "pattern", "tool", "asked"),
    [
        ("snapshots.jsonl", r"\{[^{}]*\}", "host", {"host": "h0"}),
        ("topology.json", r"\[[^\[\]]*\]", "link", {"link": "h0:p0-t0-0", "s": 1}),
    ],
)
def test_a_damaged_case_is_named(
    case: CaseFolder, tmp_path: Path, file: str, pattern: str, tool: str, asked: dict[str, Any]
) -> None:
    """Each innermost object becomes a list, or the other way round."""
    broken = CaseFolder(tmp_path / case.id)
    shutil.copytree(case.folder, broken.folder)
    text = (case.folder / file).read_text()
    (broken.folder / file).write_text(re.sub(pattern, "[]" if "{" in pattern else "{}", text))
    talk = Talk(broken)
    talk.ask("wait", s=2)
    with pytest.raises(RecordError, match="holds a value that no run writes"):
        talk.ask(tool, **asked)


def test_answers_have_the_time_at_which_they_are_given(case: CaseFolder) -> None:
    talk = Talk(case)
    talk.ask("wait", s=0.5)
    assert talk.ask("answer", state="unsure") == {"ok": True, "t_s": 0.5}
    assert talk.answers == [(0.5, {"state": "unsure"})]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("x", "not JSON: Expecting value"),
        ("[" * 200_000, "JSON of more than 64 brackets within brackets; write a line such as"),
        ("[1]", 'not a JSON object; write a line such as {"tool": "wait", "s": 1}'),
        ('{"tool": "hots"}', "there is no tool 'hots'; did you mean 'host'?"),
        ('{"tool": "ping"}', f"there is no tool 'ping'; there are {TOOLS}"),
        ('{"tool": "host"}', 'host: host must be a name, not null; write {"tool":"host","host":"h3"}'),
        ('{"tool": "host", "host": "h99"}', "there is no host 'h99'; there are h0..h3"),
        ('{"tool": "link", "link": "p0-t0-0", "s": 1}', "there is no link 'p0-t0-0'"),
        ('{"tool": "wait", "s": 0}', "wait: s must be more than 0, such as 0.5; got 0"),
        ('{"tool": "wait", "s": true}', "wait: s must be a number of seconds, not true"),
        ('{"tool": "wait", "s": 1e999}', "wait: s must be a number of seconds, not Infinity"),
        ('{"tool": "now", "s": 1}', 'now: unknown key \'s\'; write {"tool":"now"}'),
    ],
)
def test_what_is_wrong_with_a_line_is_said_and_the_talk_goes_on(case: CaseFolder, line: str, says: str) -> None:
    talk = Talk(case)
    told = json.loads(talk.conversation.reply(line))
    assert told["ok"] is False
    assert says in told["error"]
    assert talk.ask("now")["ok"]
    assert talk.conversation.log[0]["error"] == told["error"]


def test_a_budget_that_is_used_up_ends_looks_and_nothing_else(case: CaseFolder) -> None:
    talk = Talk(case, LookBudget(looks=2))
    assert [talk.ask("host", host="h0")["ok"] for _ in range(3)] == [True, True, False]
    assert "the budget of 2 looks is used up" in talk.ask("switch", switch="p0-t0-0")["error"]
    assert talk.ask("wait", s=1)["ok"]
    assert talk.ask("answer", state="healthy")["ok"]
    few = Talk(case, LookBudget(most_bytes=10))
    assert few.ask("host", host="h0")["ok"]
    assert "the budget of 10 bytes is used up" in few.ask("host", host="h0")["error"]
    assert [line["tool"] for line in talk.conversation.log][:3] == ["host"] * 3


def program(tmp_path: Path, text: str, timeout_s: float = 20) -> ProgramCalled:
    file = tmp_path / "program.py"
    file.write_text(text)
    return ProgramCalled((sys.executable, str(file)), timeout_s)


def test_a_program_talks_over_its_standard_streams(case: CaseFolder, tmp_path: Path) -> None:
    talk = Talk(case)
    lines = 'print(\'{"tool": "wait", "s": 1}\', flush=True)\nassert \'"now_s":1.0\' in input()\nprint("x")\ninput()\n'
    assert converse(program(tmp_path, lines), talk.conversation) == 0
    assert [line["tool"] for line in talk.conversation.log] == ["wait", ""]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import time; time.sleep(60)", "its time of 1 s is over; --timeout gives more"),
        ("import os, time; os.close(1); time.sleep(60)", "went on 2 s after its last line, and was ended"),
        (
            'import time; [print(\'{"tool": "topology"}\') for _ in range(200)]; print(flush=True); time.sleep(60)',
            "its time of 1 s is over; --timeout gives more",
        ),
    ],
)
def test_a_program_that_never_ends_is_ended(case: CaseFolder, tmp_path: Path, text: str, says: str) -> None:
    began = time.monotonic()
    with pytest.raises(RunError, match=says):
        converse(program(tmp_path, text, 1), Talk(case).conversation)
    assert time.monotonic() - began < 30


def test_a_program_that_is_not_there_is_said(case: CaseFolder) -> None:
    with pytest.raises(UsageError, match="nowhere: cannot be started: No such file or directory"):
        converse(ProgramCalled(("nowhere",), 1), Talk(case).conversation)
    with pytest.raises(UsageError, match="--as nobody-here: there is no such user"):
        user_called("nobody-here")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_program_of_another_user_cannot_read_the_truth(case: CaseFolder, tmp_path: Path) -> None:
    read = f"import sys; open({str(case.truth / 'truth.json')!r})"
    called = ProgramCalled(("/usr/bin/python3", "-c", read), 20, user_called("nobody"))
    assert converse(called, Talk(case).conversation) == 1
    mine = ProgramCalled(("/usr/bin/python3", "-c", read), 20)
    assert converse(mine, Talk(case).conversation) == 0, "the same with the rights of the runner"


def test_answers_of_a_program_are_kept_with_its_log(case: CaseFolder, tmp_path: Path) -> None:
    text = (
        "import json\n"
        "def ask(**request): print(json.dumps(request), flush=True); return json.loads(input())\n"
        "assert ask(tool='answer', state='healthy')['ok']\n"
        "assert 'there is one for 0 s already' in ask(tool='answer', state='unsure')['error']\n"
        "ask(tool='wait', s=1)\n"
        "assert 'leave t_s out' in ask(tool='answer', state='unsure', t_s=3)['error']\n"
        "wrong = ask(tool='answer', state='incident', incidents=[{'where': ['h77']}])\n"
        "assert 'there is no \\'h77\\'' in wrong['error']\n"
        "assert ask(tool='answer', state='incident', incidents=[{'where': ['h0']}])['ok']\n"
        "raise SystemExit(3)\n"
    )
    found = serve(case, "own", program(tmp_path, text), LookBudget())
    assert (found.status, found.answers, found.looks) == (3, 2, 0)
    assert [(one.t_s, one.state) for one in answers_to(case)["own"]] == [(0, "healthy"), (1, "incident")]
    log = (case.folder / "answers" / "own.observer.jsonl").read_text().splitlines()
    assert [json.loads(entry)["tool"] for entry in log] == [*["answer"] * 2, "wait", *["answer"] * 3]
    with pytest.raises(UsageError, match="own has answered before"):
        serve(case, "own", program(tmp_path, text), LookBudget())


def test_what_a_program_said_is_kept_where_its_time_is_over(case: CaseFolder, tmp_path: Path) -> None:
    text = 'import time; print(\'{"tool": "answer", "state": "unsure"}\', flush=True); time.sleep(60)'
    with pytest.raises(RunError, match="its time of 1 s is over"):
        serve(case, "slow", program(tmp_path, text, 1), LookBudget())
    assert len(answers_to(case)["slow"]) == 1


def test_answers_have_a_limit(case: CaseFolder) -> None:
    sheet = AnswerSheet(case)
    big = {"state": "unsure", "evidence": "x" * 1_000_000}
    for second in range(MOST_ANSWER_BYTES // 1_000_000):
        sheet.take(big, float(second))
    with pytest.raises(BadRequest, match="all answers together have at most"):
        sheet.take(big, 99.0)
    assert sum(map(len, sheet.lines)) <= MOST_ANSWER_BYTES


@pytest.mark.nightly
def test_the_example_finds_a_silent_switch(tmp_path: Path) -> None:
    """In forty lines."""
    example = Path(__file__).parents[3] / "docs" / "examples" / "detector.py"
    assert len(example.read_text().splitlines()) <= 40
    case = make_case(draw_case(2, "t1-silent"), tmp_path)
    observe(case)
    found = serve(case, "example", ProgramCalled((sys.executable, str(example)), 60), LookBudget())
    assert found.status == 0
    [score] = scores_of([case])
    assert score.incidents[0].after_ns is not None
    assert score.figures.falsely_accused == 0


def test_the_command(case: CaseFolder) -> None:
    call = ["incident", "serve", str(case.folder), "--name", "cmd", "--"]
    done = CliRunner().invoke(app, [*call, "/bin/sh", "-c", "exit 4"])
    assert done.exit_code == 1
    assert "ended with exit status 4" in done.output
    assert CliRunner().invoke(app, [*call, "/bin/sh", "-c", "kill $$"]).exit_code == 1
    assert CliRunner().invoke(app, [*call, "/bin/sh", "-c", "echo nix; read answer"]).exit_code == 0
