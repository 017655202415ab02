from __future__ import annotations

import json
import os
import re
import tracemalloc
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mrc_testbed.testbed import whole_files
from mrc_testbed.testbed.errors import ExitCode, RunError, UsageError
from mrc_testbed.testbed.rundir import results
from mrc_testbed.testbed.rundir.files import read_lines
from mrc_testbed.testbed.rundir.ownership import OWNER, abandoned, claimed, hand_over
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.rundir.results import create_folder
from mrc_testbed.testbed.rundir.tables import COMPLETIONS, SAMPLES, Completion, Sample


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return create_folder(tmp_path, "small")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_folder_is_named_by_time_and_scenario(folder: Path) -> None:
    assert re.fullmatch(r"\d{8}T\d{6}Z-small", folder.name)
    assert (folder / "logs").is_dir()


def test_runs_of_the_same_second_get_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.setattr(results, "datetime", Stopped)
    names = [create_folder(tmp_path / "deep" / "out", "small").name for _ in range(3)]
    assert names == ["20260102T030405Z-small", "20260102T030405Z-small-2", "20260102T030405Z-small-3"]


def test_a_folder_inside_a_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"^--out .*/file: is not a folder$") as told:
        create_folder(tmp_path / "file", "small")
    with pytest.raises(UsageError, match=r"^--out .*/file/in: .*/file is not a folder$"):
        create_folder(tmp_path / "file" / "in", "small")
    assert told.value.exit_code == ExitCode.USAGE
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"^--out .*/dangling: is not a folder$"):
        create_folder(tmp_path / "dangling", "small")


def test_every_line_is_on_disk_at_once(folder: Path) -> None:
    recorder = Recorder(folder)
    recorder.history("invoke", op="phase", phase="build")
    assert [line["phase"] for line in lines(folder / "history.jsonl")] == ["build"]
    recorder.event("h0", {"event": "step", "t_ns": 7})
    assert lines(folder / "events.jsonl") == [{"host": "h0", "event": "step", "t_ns": 7}]
    recorder.rows(COMPLETIONS, [Completion("h0", 0, 1, 2, 3, 4)])
    assert (folder / "completions.csv").read_text() == "host,step,begin_ns,end_ns,bytes,bytes_wrong\nh0,0,1,2,3,4\n"
    recorder.rows(SAMPLES, [Sample(9, host, "port0", 1, 2, 3, 4, 5, 6) for host in ("h0", "h1")])
    assert (folder / "samples.csv").read_text().splitlines() == [
        "t_ns,node,port,rx_bytes,rx_packets,rx_drops,tx_bytes,tx_packets,tx_drops",
        "9,h0,port0,1,2,3,4,5,6",
        "9,h1,port0,1,2,3,4,5,6",
    ]


def test_lines_that_wait_are_written_whole_by_a_flush_a_line_of_the_history_or_the_end(folder: Path) -> None:
    recorder = Recorder(folder, at_once=False)
    told = [{"event": "step", "t_ns": t_ns} for t_ns in range(3)]
    events, completions = folder / "events.jsonl", folder / "completions.csv"
    recorder.event("h0", told[0])
    assert not events.exists()
    recorder.flush()
    assert lines(events) == [{"host": "h0", **told[0]}]
    recorder.event("h0", told[1])
    for step in range(2):
        recorder.rows(COMPLETIONS, [Completion("h0", step, 1, 2, 3, 4)])
    recorder.history("invoke", op="phase", phase="build")
    assert lines(events) == [{"host": "h0", **each} for each in told[:2]]
    assert completions.read_text() == "host,step,begin_ns,end_ns,bytes,bytes_wrong\nh0,0,1,2,3,4\nh0,1,1,2,3,4\n"
    recorder.event("h0", told[2])
    recorder.close()
    assert lines(events) == [{"host": "h0", **each} for each in told]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_when_what_waited_is_written(folder: Path) -> None:
    recorder = Recorder(folder, at_once=False)
    (folder / "events.jsonl").symlink_to("/dev/full")
    recorder.event("h0", {"event": "step"})
    with pytest.raises(RunError, match=r"cannot write .*/events\.jsonl: No space left on device"):
        recorder.flush()
    recorder.event("h0", {"event": "step"})
    recorder.close()


def test_history_lines_are_numbered_and_timed(folder: Path) -> None:
    recorder = Recorder(folder)
    recorder.history("invoke", op="phase", phase="build")
    recorder.history("ok", op="phase", phase="build")
    recorder.history("invoke", op="workload", t_ns=12)
    first, second, third = lines(folder / "history.jsonl")
    assert [each["i"] for each in (first, second, third)] == [0, 1, 2]
    assert [each["type"] for each in (first, second, third)] == ["invoke", "ok", "invoke"]
    assert first["t_ns"] <= second["t_ns"]
    assert third["t_ns"] == 12


def test_a_second_recorder_goes_on_where_the_first_ended(folder: Path) -> None:
    first = Recorder(folder)
    first.history("invoke", op="phase", phase="build")
    first.rows(COMPLETIONS, [Completion("h0", 0, 1, 2, 3, 4)])
    first.close()
    second = Recorder(folder)
    second.history("fail", op="interrupt", error="killed")
    second.close()
    assert [line["i"] for line in lines(folder / "history.jsonl")] == [0, 1]
    assert (folder / "completions.csv").read_text().count("host,step") == 1
    assert (folder / "completions.csv").read_text().endswith("h0,0,1,2,3,4\n")


def test_a_line_torn_by_a_kill_does_not_swallow_the_next(folder: Path) -> None:
    first = Recorder(folder)
    first.history("invoke", op="phase", phase="build")
    first.close()
    with (folder / "history.jsonl").open("a") as history:
        history.write('{"i":1,"t_ns":12')
    second = Recorder(folder)
    second.history("fail", op="interrupt", error="killed")
    second.history("fail", op="interrupt", error="again")
    second.close()
    assert [(line["i"], line.get("error")) for line in read_lines(folder / "history.jsonl")] == [
        (0, None),
        (1, "killed"),
        (2, "again"),
    ]


def test_a_document_is_whole_or_as_before(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(folder)
    recorder.document("counters.json", {"a": 1})
    text = (folder / "counters.json").read_text()
    assert json.loads(text) == {"a": 1}
    assert text.endswith("\n")

    def full(path: Path) -> Any:
        return open("/dev/full", "wb", buffering=0)

    monkeypatch.setattr(whole_files, "open_new", full)
    with pytest.raises(RunError, match=r"cannot write .*/counters\.json: No space left on device"):
        recorder.document("counters.json", {"a": 2})
    assert (folder / "counters.json").read_text() == text


def test_documents_leave_nothing_beside_them(folder: Path) -> None:
    before = set(folder.iterdir())
    Recorder(folder).text("scenario.yaml", "name: x\n")
    assert set(folder.iterdir()) - before == {
        folder / "scenario.yaml",
        folder / "samples.csv",
        folder / "completions.csv",
    }


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_run_error_each_time_and_closing_says_nothing(folder: Path) -> None:
    recorder = Recorder(folder)
    (folder / "history.jsonl").symlink_to("/dev/full")
    told = r"^cannot write .*/history\.jsonl: No space left on device; what was written before is kept$"
    for _ in range(2):
        with pytest.raises(RunError, match=told):
            recorder.history("invoke", op="phase", phase="build")
    recorder.close()


def test_a_folder_replaced_by_a_file_is_a_run_error(tmp_path: Path) -> None:
    folder = create_folder(tmp_path, "small")
    recorder = Recorder(folder)
    folder.rename(tmp_path / "moved")
    folder.write_text("a file now")
    for write in (
        lambda: recorder.history("invoke", op="phase"),
        lambda: recorder.event("h0", {"event": "step"}),
        lambda: recorder.document("plan.json", {}),
        lambda: recorder.log("h0"),
        lambda: Recorder(folder),
        lambda: claimed(folder).__enter__(),
    ):
        with pytest.raises(RunError, match=r"cannot write .*: Not a directory"):
            write()
    recorder.close()


def test_the_log_of_a_host_takes_bytes(folder: Path) -> None:
    with Recorder(folder).log("h0") as log:
        log.write(b"\xff\n")
    assert (folder / "logs" / "h0.log").read_bytes() == b"\xff\n"


def test_the_forker_and_its_first_daemon_write_one_log(folder: Path) -> None:
    recorder = Recorder(folder)
    with recorder.log("h0") as forker, recorder.log("h0") as daemon:
        for file, line in ((daemon, b"daemon\n"), (forker, b"forker\n"), (daemon, b"and again\n")):
            file.write(line)
            file.flush()
    assert (folder / "logs" / "h0.log").read_bytes() == b"daemon\nforker\nand again\n"


@pytest.mark.parametrize(
    "text", ["", '{"pid": 1, "star', "{}", "[]", '{"boot": "x"', "\N{LATIN SMALL LETTER A WITH ACUTE}"]
)
def test_a_torn_owner_file_means_abandoned(folder: Path, text: str) -> None:
    (folder / OWNER).write_bytes(text.encode("latin-1"))
    assert abandoned(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
def test_folders_made_on_the_way_belong_to_the_user_who_called_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12346")
    create_folder(tmp_path / "new" / "results", "small")
    for path in (tmp_path / "new", tmp_path / "new" / "results"):
        assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)
    assert tmp_path.stat().st_uid != 12345


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
@pytest.mark.parametrize(("user", "group"), [("me", "12346"), ("12345", "-1"), ("", "1"), ("١٢", "1"), ("9" * 20, "1")])
def test_what_is_no_number_of_a_user_names_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str, group: str
) -> None:
    monkeypatch.setenv("SUDO_UID", user)
    monkeypatch.setenv("SUDO_GID", group)
    folder = create_folder(tmp_path / "results", "small")
    hand_over(folder)
    assert (folder.stat().st_uid, folder.stat().st_gid) == (0, 0)


def test_a_document_is_written_part_by_part_and_never_as_a_whole(tmp_path: Path) -> None:
    content = {f"host {n}": {"sent": [n] * 100, "text": "\u00fc\udcff", "none": None} for n in range(2000)}
    recorder = Recorder(tmp_path)
    tracemalloc.start()
    try:
        recorder.document("counters.json", content)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        recorder.close()
    written = (tmp_path / "counters.json").read_text(encoding="utf-8")
    assert written == json.dumps(content, indent=1) + "\n"
    assert most < len(written) / 4


def test_a_document_that_is_no_json_leaves_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(TypeError):
        recorder.document("counters.json", {"ports": object()})
    recorder.close()
    assert sorted(tmp_path.iterdir()) == before
