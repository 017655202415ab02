"""A student's folder, through the commands: begun, checked, put back, graded; bad input is one clear sentence."""

from __future__ import annotations

import csv
import errno
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mrc_testbed.testbed.errors import ExitCode, MissingCapability, UsageError
from mrc_testbed.testbed.inputs import files_of_others, input_bytes
from mrc_testbed.testbed.lessons import new
from mrc_testbed.testbed.lessons.beside import beside
from mrc_testbed.testbed.lessons.grades import lesson_folders
from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.lessons.reading import Keys, YamlFile
from mrc_testbed.testbed.lessons.requirements import Kept, read_required
from mrc_testbed.testbed.lessons.shelf import LESSONS
from tests.unit.calls import Call, Ended

TEMPLATE = Path(new.__file__).parent / "template"
Lesson = Callable[..., Ended]


@pytest.fixture
def lesson(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lesson:
    """`lesson("check", "anna")`: the command in an empty folder, beside the lesson `mine`."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TEMPLATE, tmp_path / "mine")
    return lambda *words: call("lesson", *words)


def solved(folder: Path) -> None:
    shutil.copy(TEMPLATE / "solution.yaml", folder / "scenario.yaml")
    shutil.copy(TEMPLATE / "solution-answers.yaml", folder / "answers.yaml")


def test_a_lesson_from_start_to_pass(lesson: Lesson, tmp_path: Path) -> None:
    assert lesson("start", "mine", "anna").status == 0
    first = lesson("check", "anna", "--virtual")
    assert first.status == ExitCode.USAGE
    assert first.err == "mrc-testbed: anna/answers.yaml:2: left: write your prediction first\n"
    assert not (tmp_path / "anna/runs").exists()
    solved(tmp_path / "anna")
    done = lesson("check", "anna", "--virtual")
    assert done.status == 0
    assert done.out.endswith("PASS mine: 4 of 4 points\n")
    again = lesson("check", "anna", "--virtual")
    assert "run scenario" in done.out
    assert "run scenario" not in again.out


def test_a_wrong_answer_costs_its_points_and_the_run_is_made_once(lesson: Lesson, tmp_path: Path) -> None:
    lesson("start", "mine", "anna")
    solved(tmp_path / "anna")
    (tmp_path / "anna/answers.yaml").write_text("left: 0.5\n")
    assert lesson("check", "anna", "--virtual").out.endswith("FAIL mine: 3 of 4 points\n")
    (tmp_path / "anna/answers.yaml").write_text("left: 0.9\n")
    late = lesson("check", "anna", "--virtual")
    assert "note: left was written or changed after the run; no points are lost" in late.out
    assert late.status == 0
    assert len(list((tmp_path / "anna/runs").glob("*Z-new-lesson"))) == 1


def test_a_scenario_that_breaks_a_requirement_is_not_run(lesson: Lesson, tmp_path: Path) -> None:
    lesson("start", "mine", "anna")
    solved(tmp_path / "anna")
    scenario = tmp_path / "anna/scenario.yaml"
    scenario.write_text(scenario.read_text().replace("for: 1s", "for: 1ms"))
    ended = lesson("check", "anna", "--virtual")
    assert ended.status == ExitCode.FAIL
    assert "scenario.yaml: faults must stay as it was" in ended.out
    assert not (tmp_path / "anna/runs").exists()


def test_a_run_that_is_there_is_judged_if_it_is_of_the_scenario(lesson: Lesson, call: Call, tmp_path: Path) -> None:
    lesson("start", "mine", "anna")
    solved(tmp_path / "anna")
    call("run", "anna/scenario.yaml", "--virtual", "--seed", "5", "--out", "results", "-q")
    assert lesson("check", "anna", "--run", "results/latest").out.endswith("4 of 4 points\n")
    shutil.copy(TEMPLATE / "start.yaml", tmp_path / "anna/scenario.yaml")
    other = lesson("check", "anna", "--run", "results/latest")
    assert other.status == ExitCode.USAGE
    assert "is no run of anna/scenario.yaml: fabric differs" in other.err


@pytest.mark.parametrize("scale", ["real", "8000"])
@pytest.mark.nightly(keep=1)
def test_a_scenario_that_runs_at_another_scale_is_the_same(
    lesson: Lesson, call: Call, tmp_path: Path, scale: str
) -> None:
    lesson("start", "mine", "anna")
    solved(tmp_path / "anna")
    call("run", "anna/scenario.yaml", "--virtual", "--scale", scale, "--out", "results", "-q")
    with (tmp_path / "anna/scenario.yaml").open("a") as file:
        file.write(f"world: virtual\nscale: {scale}\n")
    done = lesson("check", "anna", "--run", "results/latest")
    assert "4 of 4 points" in done.out, done.err


def test_start_never_writes_over_anything(lesson: Lesson, tmp_path: Path) -> None:
    (tmp_path / "anna").mkdir()
    (tmp_path / "anna/scenario.yaml").write_text("mine\n")
    ended = lesson("start", "mine", "anna")
    assert ended.status == ExitCode.USAGE
    assert "anna/scenario.yaml: is there already" in ended.err
    assert [path.name for path in (tmp_path / "anna").iterdir()] == ["scenario.yaml"]


def test_restore_keeps_what_was_there(lesson: Lesson, tmp_path: Path) -> None:
    lesson("start", "mine", "anna", "--seed-by-name")
    (tmp_path / "anna/answers.yaml").write_text("left: 0.123\n")
    (tmp_path / "anna/notes.txt").write_text("my own\n")
    assert lesson("restore", "anna").status == 0
    (kept,) = (tmp_path / "anna").glob("kept-*")
    assert (kept / "answers.yaml").read_text() == "left: 0.123\n"
    assert (tmp_path / "anna/answers.yaml").read_text() == (TEMPLATE / "answers.yaml").read_text()
    assert (tmp_path / "anna/notes.txt").exists()
    assert "seed_by_name: true" in (tmp_path / "anna/lesson.yaml").read_text()


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("answers.yaml", "laft: 1\n", "anna/answers.yaml:1:1: laft: this lesson asks for no such answer"),
        ("answers.yaml", "left: {a: 1}\n", "anna/answers.yaml:1:7: left: must be one answer"),
        ("answers.yaml", "left: [\n", "answers.yaml: not valid YAML"),
        ("answers.yaml", "", "anna/answers.yaml:1:1: answers.yaml: is empty"),
        ("scenario.yaml", "name: x\n", "anna/scenario.yaml:1:1"),
        ("lesson.yaml", "lesson: mine\nfolder: mine\nformat: 1\nversion: 7\n", "was started from version 7 of mine"),
        ("lesson.yaml", "lesson: mine\nfolder: mine\nformat: 9\nversion: 1\n", "was started from format 9 of mine"),
        ("lesson.yaml", "lesson: nowhere\n", "there is no lesson 'nowhere'"),
        ("lesson.yaml", "lesson: mine\nfolder: gone\n", "gone: no such folder, and so no check.yaml"),
    ],
)
def test_bad_input_is_one_clear_sentence(lesson: Lesson, tmp_path: Path, file: str, text: str, told: str) -> None:
    lesson("start", "mine", "anna")
    (tmp_path / "anna" / file).write_text(text)
    ended = lesson("check", "anna", "--virtual")
    assert ended.status == ExitCode.USAGE
    assert told in ended.err
    assert (tmp_path / "anna" / file).read_text() == text


@pytest.mark.parametrize("name", ["answers.yaml", "scenario.yaml"])
def test_a_file_that_is_gone_is_named(lesson: Lesson, tmp_path: Path, name: str) -> None:
    lesson("start", "mine", "anna")
    (tmp_path / "anna" / name).unlink()
    ended = lesson("check", "anna", "--virtual")
    assert ended.status == ExitCode.USAGE
    assert f"anna/{name}: is missing; `mrc-testbed lesson restore anna` puts it back" in ended.err


def test_a_folder_without_a_lesson_is_told_how_to_begin_one(lesson: Lesson) -> None:
    assert "no lesson was started here; `mrc-testbed lesson start" in lesson("check").err


def test_an_unknown_lesson_is_told(lesson: Lesson) -> None:
    assert "there is no lesson 'q'; `mrc-testbed lesson list` shows all" in lesson("show", "q").err


def test_a_link_that_leads_out_of_the_lesson_is_told_as_a_path_in_the_project() -> None:
    at_home = replace(load_lesson(TEMPLATE), folder=LESSONS / "02-planes")
    kept = "`[a](b.md)`, [net](https://x.org), [mine](scenario.yaml)"
    text = f"[how](../../../docs/protocol.md#evs), {kept}, [far](../../../../a.md)"
    told = replace(at_home, text=text).told
    assert told == f"how (`docs/protocol.md#evs`), {kept}, far (`../../../../a.md`)"


def test_what_is_handed_out_and_shown_has_no_link_out_of_the_lesson(lesson: Lesson, tmp_path: Path) -> None:
    path = tmp_path / "mine/lesson.md"
    path.write_text(path.read_text() + "\n[far](../far.md)\n")
    lesson("start", "mine", "anna")
    assert "](../" not in (tmp_path / "anna/lesson.md").read_text()
    assert "far (`../far.md`)" in lesson("show", "mine").out


def test_hints_come_one_at_a_time(lesson: Lesson) -> None:
    assert "hint 1 of 2" in lesson("hint", "mine").out
    assert "an eighth" in lesson("hint", "mine", "2").out
    assert lesson("hint", "mine", "3").err == "mrc-testbed: lesson mine has 2 hints, not 3\n"


def test_the_solution_is_printed_whole(lesson: Lesson) -> None:
    out = lesson("solution", "mine").out
    assert "planes: 8" in out
    assert "left: 0.9" in out


def test_a_text_that_yaml_would_read_otherwise_is_printed_in_quotes(lesson: Lesson, tmp_path: Path) -> None:
    (tmp_path / "mine/solution-answers.yaml").write_text('left: "fcbb::"\n')
    assert "left: 'fcbb::'\n" in lesson("solution", "mine").out


def test_the_solution_of_a_folder_has_what_its_runs_have(lesson: Lesson, tmp_path: Path) -> None:
    lesson("start", "mine", "anna")
    solved(tmp_path / "anna")
    (tmp_path / "mine/solution-answers.yaml").write_text("{}\n")
    assert "left: # what your run has\n" in lesson("solution", "mine").out
    assert "left: # what your run has\n" in lesson("solution", "anna").out
    lesson("check", "anna", "--virtual")
    assert re.search(r"^left: 0\.\d{1,4}$", lesson("solution", "anna").out, re.M)
    check = tmp_path / "mine/check.yaml"
    check.write_text(check.read_text().replace("  - qp_errors == 0", "  - {name: built, that: qp_errors == 1}"))
    check.write_text(check.read_text().replace("once: kept", "once: built"))
    assert "left: # what your run has\n" in lesson("solution", "anna").out, "the run is not what it is about"
    assert lesson("hint", "anna", "2").out == lesson("hint", "mine", "2").out


def test_grades_do_not_go_into_a_file(lesson: Lesson, tmp_path: Path) -> None:
    lesson("start", "mine", "class/eve")
    (tmp_path / "taken").write_text("")
    ended = lesson("grade", "class/eve", "--virtual", "--lesson", "mine", "--out", "taken")
    assert ended.status == 2
    assert ended.said == ["mrc-testbed: --out taken: is not a folder"]


@pytest.mark.parametrize("name", ["answers.yaml", "scenario.yaml", "lesson.yaml"])
def test_who_grades_reads_nothing_that_a_student_links_to(lesson: Lesson, tmp_path: Path, name: str) -> None:
    lesson("start", "mine", "class/eve")
    secret = tmp_path / "secret"
    secret.write_text("root: hash\n")
    (tmp_path / "class/eve" / name).unlink()
    (tmp_path / "class/eve" / name).symlink_to(secret)
    ended = lesson("grade", "class/eve", "--virtual", "--lesson", "mine")
    assert ended.status == 0
    assert f"{name}: is a link; put the file itself there" in (tmp_path / "grades.csv").read_text()
    assert "hash" not in (tmp_path / "grades.csv").read_text() + ended.out + ended.err


@pytest.mark.parametrize("command", ["grade", "check"])
def test_a_check_writes_nothing_where_a_student_links_to(lesson: Lesson, tmp_path: Path, command: str) -> None:
    lesson("start", "mine", "class/eve")
    solved(tmp_path / "class/eve")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "class/eve/runs").symlink_to(elsewhere)
    ended = lesson(command, "class/eve", "--virtual", *(["--lesson", "mine"] if command == "grade" else []))
    told = (tmp_path / "grades.csv").read_text() if command == "grade" else ended.err
    assert "runs: is a link; put" in told
    assert not list(elsewhere.iterdir())


def test_a_lesson_is_begun_anew_through_no_link(lesson: Lesson, tmp_path: Path) -> None:
    """Also through none that leads to what is not there yet."""
    lesson("start", "mine", "eve")
    for name in ("scenario.yaml", "answers.yaml"):
        (tmp_path / "eve" / name).unlink()
        (tmp_path / "eve" / name).symlink_to(tmp_path / f"new-{name}")
    assert lesson("restore", "eve").status == 0
    assert not list(tmp_path.glob("new-*"))
    assert not (tmp_path / "eve/scenario.yaml").is_symlink()


def test_who_grades_reads_a_file_once_and_no_link_that_comes_after_the_look(
    lesson: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson("start", "mine", "class/eve")
    (tmp_path / "secret").write_text("root: hash\n")
    (tmp_path / "class/eve/scenario.yaml").unlink()
    (tmp_path / "class/eve/scenario.yaml").symlink_to(tmp_path / "secret")
    monkeypatch.setattr("mrc_testbed.testbed.lessons.work.own_plain", lambda path: path)
    assert lesson("grade", "class/eve", "--virtual", "--lesson", "mine").status == 0
    told = (tmp_path / "grades.csv").read_text()
    assert "scenario.yaml: is missing" in told
    assert "hash" not in told
    file = tmp_path / "plain.yaml"
    file.write_text("first")
    with files_of_others(tmp_path):
        before = input_bytes(file)
        file.write_text("second")
        assert input_bytes(file) == before == b"first"
    assert input_bytes(file) == b"second"


def test_who_grades_runs_no_student_s_code_whatever_the_file_was_when_it_was_looked_at(
    lesson: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is another between the look for plugins and the load."""
    lesson("start", "mine", "class/eve")
    solved(tmp_path / "class/eve")
    (tmp_path / "class/eve/evil.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')\nPLUGIN = {{}}\n")
    file = tmp_path / "class/eve/scenario.yaml"
    file.write_text(f"{file.read_text()}plugins: [evil.py]\n")
    monkeypatch.setattr("mrc_testbed.testbed.app.lesson_grades.named_code", lambda _: "")
    assert lesson("grade", "class/eve", "--virtual", "--lesson", "mine").status == 0
    assert "evil.py is code that was never run on this machine" in (tmp_path / "grades.csv").read_text()
    assert not (tmp_path / "was-run").exists()


def test_a_number_that_nothing_holds_ends_no_grading(lesson: Lesson, tmp_path: Path) -> None:
    for student in ("anna", "bo"):
        lesson("start", "mine", f"class/{student}")
        solved(tmp_path / "class" / student)
    (tmp_path / "class/anna/answers.yaml").write_text(f"left: 0x{'f' * 5000}\n")
    ended = lesson("grade", "class", "--virtual", "--lesson", "mine")
    assert ended.status == 0
    rows = list(csv.DictReader((tmp_path / "grades.csv").read_text("utf-8-sig").splitlines()))
    assert [(row["student"], row["points"]) for row in rows] == [("anna", "3"), ("bo", "4")]


def test_what_nobody_thought_of_ends_no_grading(
    lesson: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson("start", "mine", "class/anna")

    def broken(*_: object) -> None:
        raise OverflowError("too\nlarge")

    monkeypatch.setattr("mrc_testbed.testbed.app.lesson_grades.check_work", broken)
    assert lesson("grade", "class", "--virtual", "--lesson", "mine").status == 0
    assert "cannot be judged: OverflowError: too large" in (tmp_path / "grades.csv").read_text()


def test_a_class_is_graded(lesson: Lesson, tmp_path: Path) -> None:
    for student in ("=anna", "bo/mine", "chidi"):
        lesson("start", "mine", f"class/{student}")
    solved(tmp_path / "class/=anna")
    (tmp_path / "class/chidi/answers.yaml").write_text("left: [")
    (tmp_path / "class/nobody").mkdir()
    folders = [str(path) for path in sorted((tmp_path / "class").iterdir())]
    ended = lesson("grade", *folders, "--virtual", "--lesson", "mine")
    assert ended.status == 0
    assert "note: " in ended.err
    assert "nobody: no lesson was started here" in ended.err
    rows = list(csv.DictReader((tmp_path / "grades.csv").read_text("utf-8-sig").splitlines()))
    assert [(row["student"], row["lesson"], row["points"], row["of"], row["verdict"]) for row in rows] == [
        ("'=anna", "mine", "4", "4", "pass"),
        ("bo", "mine", "1", "4", "fail"),
        ("chidi", "mine", "0", "4", "fail"),
    ]
    assert "not valid YAML" in rows[2]["reason"]
    graded = json.loads((tmp_path / "grades.json").read_text())["grades"]
    assert [part["verdict"] for part in graded[0]["parts"]] == ["pass", "pass", "pass"]


def rows(folder: Path) -> list[tuple[str, ...]]:
    found = csv.DictReader((folder / "grades.csv").read_text("utf-8-sig").splitlines())
    return [(row["student"], row["lesson"], row["points"], row["of"], row["verdict"]) for row in found]


def test_what_this_machine_lacks_costs_no_student_anything(
    lesson: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson("start", "mine", "class/anna")

    def lacking(*_: object) -> None:
        raise MissingCapability("no root", "run with sudo")

    monkeypatch.setattr("mrc_testbed.testbed.app.lesson_grades.check_work", lacking)
    assert lesson("grade", "class", "--lesson", "mine").status == ExitCode.INCONCLUSIVE
    assert rows(tmp_path) == [("anna", "mine", "0", "0", "inconclusive")]


def test_a_grading_that_is_killed_leaves_a_row_for_each_student(
    lesson: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table with one student of two, or that of an earlier call, looked like a whole class."""
    for student in ("anna", "bo"):
        lesson("start", "mine", f"class/{student}")
    seen: list[list[tuple[str, ...]]] = []

    def killed(*_: object) -> None:
        seen.append(rows(tmp_path))
        raise MissingCapability("no root", "run with sudo")

    monkeypatch.setattr("mrc_testbed.testbed.app.lesson_grades.check_work", killed)
    lesson("grade", "class", "--lesson", "mine")
    assert seen[0] == [(student, "mine", "0", "0", "inconclusive") for student in ("anna", "bo")]


def test_a_lesson_for_the_kernel_is_left_open_in_virtual_time(lesson: Lesson, tmp_path: Path) -> None:
    check = tmp_path / "mine/check.yaml"
    check.write_text(check.read_text().replace("worlds: [kernel, virtual]", "worlds: [kernel]"))
    lesson("start", "mine", "class/anna")
    ended = lesson("grade", "class", "--lesson", "mine", "--virtual")
    assert ended.status == ExitCode.INCONCLUSIVE
    assert "INCONCLUSIVE anna mine: 0 of 0: --virtual: lesson mine needs a kernel" in ended.out


def test_the_teacher_and_not_the_student_says_which_lesson_grades(lesson: Lesson, tmp_path: Path) -> None:
    lesson("start", "mine", "class/anna")
    solved(tmp_path / "class/anna")
    unnamed = lesson("grade", "class", "--virtual")
    assert unnamed.status == ExitCode.INCONCLUSIVE
    assert "lesson 'mine' is not shipped; `--lesson FOLDER` says where it is" in unnamed.out
    easy = tmp_path / "easy/01-the-address-is-the-path"
    shutil.copytree(TEMPLATE, easy)
    lesson("start", str(easy), "class/bob")
    solved(tmp_path / "class/bob")
    lesson("grade", "class/bob", "--virtual")
    assert rows(tmp_path)[0][1:] == ("01-the-address-is-the-path", "0", "16", "fail")


def test_a_lesson_that_lies_elsewhere_is_graded_where_the_teacher_has_it(lesson: Lesson, tmp_path: Path) -> None:
    lesson("start", "mine", "class/anna")
    solved(tmp_path / "class/anna")
    (tmp_path / "mine").rename(tmp_path / "elsewhere")
    (tmp_path / "teacher").mkdir()
    (tmp_path / "elsewhere").rename(tmp_path / "teacher/mine")
    assert lesson("grade", "class", "--virtual", "--lesson", "teacher/mine").status == 0
    assert rows(tmp_path) == [("anna", "mine", "4", "4", "pass")]


def test_a_lesson_of_another_version_has_its_student_and_its_name(lesson: Lesson, tmp_path: Path) -> None:
    lesson("start", "1", "class/anna/01-the-address-is-the-path")
    marker = tmp_path / "class/anna/01-the-address-is-the-path/lesson.yaml"
    marker.write_text(marker.read_text().replace("version: ", "version: 9"))
    lesson("grade", "class/anna", "--virtual")
    assert rows(tmp_path) == [("anna", "01-the-address-is-the-path", "0", "0", "fail")]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("plugins: [mine.py]\n", "plugins"),
        ("matrix: {plugins.0: [mine.py]}\n", "matrix.plugins.0"),
        ("variants: {a: {plugins: [mine.py]}}\n", "variants.a.plugins"),
        ("variants: {a: {workload: [programs: {command: touch ran}]}}\n", "variants.a.workload.0.programs"),
        ("matrix: {workload.0.programs.command: [touch ran]}\n", "matrix.workload.0.programs.command"),
    ],
)
def test_grading_runs_no_code_of_a_student(lesson: Lesson, tmp_path: Path, text: str, place: str) -> None:
    lesson("start", "mine", "class/eve")
    solved(tmp_path / "class/eve")
    (tmp_path / "class/eve/mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nPLUGIN = {{}}\n")
    with (tmp_path / "class/eve/scenario.yaml").open("a") as file:
        file.write(text)
    ended = lesson("grade", "class", "--virtual", "--lesson", "mine")
    assert f": {place}: grading runs no student's code" in ended.out
    assert not (tmp_path / "ran").exists()


def test_a_folder_that_cannot_be_written_ends_no_grading(lesson: Lesson, tmp_path: Path) -> None:
    for student in ("anna", "bo"):
        lesson("start", "mine", f"class/{student}")
        solved(tmp_path / "class" / student)
    (tmp_path / "class/anna/runs").write_text("no folder")
    ended = lesson("grade", "class", "--virtual", "--lesson", "mine")
    assert ended.status == 0
    assert "anna/runs: cannot be read: Not a directory" in ended.out
    assert rows(tmp_path) == [("anna", "mine", "0", "4", "fail"), ("bo", "mine", "4", "4", "pass")]


def test_a_full_disk_costs_no_student_anything(lesson: Lesson, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson("start", "mine", "class/anna")
    solved(tmp_path / "class/anna")

    def full(path: Path, _: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("mrc_testbed.testbed.lessons.predictions.write_json", full)
    assert lesson("grade", "class", "--virtual", "--lesson", "mine").status == ExitCode.INCONCLUSIVE
    assert rows(tmp_path) == [("anna", "mine", "0", "0", "inconclusive")]


def test_a_folder_that_is_closed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", closed)
    with pytest.raises(UsageError, match="anna: cannot be read: Permission denied"):
        lesson_folders([tmp_path / "anna"])


@pytest.mark.parametrize(
    "axis", ["matrix: {fabric.planes: [4, 8]}", "variants: {a: {fabric.port_rate: 50mbit}, b: {}}"]
)
def test_no_cell_gets_round_a_requirement(lesson: Lesson, tmp_path: Path, axis: str) -> None:
    lesson("start", "mine", "anna")
    solved(tmp_path / "anna")
    check = tmp_path / "mine/check.yaml"
    gates = "  - same: [fabric.port_rate]\n  - holds: fabric.planes == 8\n"
    check.write_text(check.read_text().replace("requires:\n", f"requires:\n{gates}"))
    with (tmp_path / "anna/scenario.yaml").open("a") as file:
        file.write(f"{axis}\n")
    ended = lesson("check", "anna", "--virtual")
    told = "fabric.planes must be == 8 [planes=4]" if "matrix" in axis else "fabric.port_rate must stay as it was [a]"
    assert f"scenario.yaml: {told}" in ended.out, ended.err
    assert not (tmp_path / "anna/runs").exists()


ONE = "{hosts: all, steps: 3, compute: 50ms, allreduce: 1MiB}"
TWO, THREE = ONE.replace("1MiB", "2MiB"), ONE.replace("1MiB", "3MiB")


def met(tmp_path: Path, condition: str, mine: str, starter: str, begun: str = "") -> str:
    """Why a condition is not met by a file with these lines, where the starter has those. `begun`: before these lines,
    if it is not the starter of the template."""
    start = (TEMPLATE / "start.yaml").read_text()
    (tmp_path / "mine.yaml").write_text((begun or start) + mine)
    (tmp_path / "start.yaml").write_text(start + starter)
    (tmp_path / "check.yaml").write_text(f"requires: [{{{condition}}}]\n")
    file = YamlFile.read(tmp_path / "check.yaml")
    required = read_required(Keys(file, ("requires", 0), file.source.data["requires"][0]), ["scenario"])
    assert required
    assert not file.problems
    return required.unmet(beside(tmp_path / "mine.yaml", tmp_path / "start.yaml"))


def test_what_the_starters_own_variant_sets_is_not_the_students(tmp_path: Path) -> None:
    starter = "variants: {fast: {fabric.port_rate: 50mbit}, mine: {}}\n"
    assert met(tmp_path, "holds: fabric.port_rate <= 12.5mbit", starter, starter) == ""
    own = starter.replace("mine: {}", "mine: {fabric.port_rate: 50mbit}")
    told = met(tmp_path, "holds: fabric.port_rate <= 12.5mbit", own, starter)
    assert told == "fabric.port_rate must be <= 12.5mbit [mine]"


def test_a_change_counts_where_it_is_run(tmp_path: Path) -> None:
    condition = "changed: fabric.rtt"
    assert (
        met(tmp_path, condition, "matrix: {fabric.rtt: [40ms]}\n", "")
        == "fabric.rtt is still as it was; change it [rtt=40ms]"
    )
    assert met(tmp_path, condition, "matrix: {fabric.rtt: [40ms, 60ms]}\n", "") == ""


def test_cells_are_held_against_the_starters_whatever_they_are_called(tmp_path: Path) -> None:
    """A third value makes the names of the other two longer."""
    mine, starter = (
        f"matrix: {{workload: [[{{train: {ONE}}}], [{{train: {TWO}}}]{more}]}}\n"
        for more in (f", [{{train: {THREE}}}]", "")
    )
    assert "[workload" in met(tmp_path, "same: workload", mine, starter)
    assert met(tmp_path, "same: workload", starter, starter) == ""
    third = met(tmp_path, "same: workload", mine, starter)
    assert "3MiB" in third, "it is the third that differs"


def test_a_lesson_whose_solution_breaks_what_it_requires_is_told(lesson: Lesson, tmp_path: Path) -> None:
    check = tmp_path / "mine/check.yaml"
    check.write_text(check.read_text().replace("requires:\n", "requires:\n  - holds: fabric.planes <= 4\n"))
    ended = lesson("start", "mine", "anna")
    assert ended.status == ExitCode.USAGE
    assert "check.yaml:12:" in ended.err
    assert "the solution does not meet it: fabric.planes must be <= 4" in ended.err


def test_again_is_no_choice_of_the_page(lesson: Lesson) -> None:
    lesson("start", "mine", "anna")
    ended = lesson("check", "anna", "--web", "--again")
    assert ended.status == ExitCode.USAGE
    assert "--again: the page has no such choice" in ended.err


def test_a_lesson_whose_path_has_signs_of_yaml_is_found_again(lesson: Lesson, tmp_path: Path) -> None:
    odd = tmp_path / "my: own #1"
    odd.mkdir()
    shutil.copytree(TEMPLATE, odd / "mine")
    lesson("start", str(odd / "mine"), "anna")
    solved(tmp_path / "anna")
    assert lesson("check", "anna", "--virtual").out.endswith("4 of 4 points\n")


def test_seeds_differ_by_student_and_not_by_folder_above(lesson: Lesson, tmp_path: Path) -> None:
    from mrc_testbed.testbed.lessons.work import open_work

    for folder in ("anna", "bo", "other/anna", "class/anna/mine"):
        lesson("start", "mine", folder, "--seed-by-name")
    seeds = [open_work(tmp_path / folder).seed for folder in ("anna", "bo", "other/anna", "class/anna/mine")]
    assert seeds[0] == seeds[2] == seeds[3] != seeds[1]


@pytest.mark.parametrize(
    ("wired", "fabric", "told"),
    [
        ("ports: 8", "t0_groups: 1, t1: 1, hosts_per_t0: 16", "p0-t0-0 has 17 ports; at most 8"),
        ("ports: 8", "t0_groups: 2, t1: 1, hosts_per_t0: 8", "p0-t0-0 has 9 ports; at most 8"),
        ("ports: 8", "t0_groups: 2, t1: 1, hosts_per_t0: 7", ""),
        ("ports: 3", "t0_groups: 4, t1: 1, hosts_per_t0: 2", "p0-t1-0 has 4 ports; at most 3"),
        ("ports: 4", "family: {rail: {rails: 2, nodes: 2, spine: 4}}", "p0-t0-0 has 6 ports; at most 4"),
        ("switches: 5", "t0_groups: 4, t1: 2, hosts_per_t0: 4", "plane 0 has 6 switches; at most 5"),
        ("switches: 5", "family: {rail: {rails: 4, nodes: 4, spine: 1}}", ""),
        ("hosts: 16", "family: {rail: {rails: 4, nodes: 5, spine: 1}}", "the fabric has 20 hosts; at most 16"),
        ("hosts: 16, switches: 5, ports: 8", "family: {rail: {rails: 4, nodes: 4, spine: 1}}", ""),
    ],
)
def test_what_a_fabric_is_wired_of_is_counted(tmp_path: Path, wired: str, fabric: str, told: str) -> None:
    start = (TEMPLATE / "start.yaml").read_text()
    own = start.replace("t0_groups: 1, t1: 0, hosts_per_t0: 2", fabric)
    assert met(tmp_path, f"wired: {{{wired}}}", "", "", own) == told


def test_a_file_that_stays_is_compared_byte_for_byte(tmp_path: Path) -> None:
    begun, own = tmp_path / "begun", tmp_path / "own"
    for folder in (begun, own):
        folder.mkdir()
        shutil.copyfile(TEMPLATE / "start.yaml", folder / "scenario.yaml")
        (folder / "job.py").write_text("check()\n")
    kept = Kept(("job.py",))
    cells = tuple(beside(own / "scenario.yaml", begun / "scenario.yaml"))
    assert [kept.unmet(one) for one in cells] == [""]
    (own / "job.py").write_text("# check()\n")
    assert [kept.unmet(one) for one in cells] == ["job.py must stay as it was"]
    (own / "job.py").unlink()
    assert [kept.unmet(one) for one in cells] == ["job.py must stay as it was"]
