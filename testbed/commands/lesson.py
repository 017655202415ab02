"""`mrc-testbed lesson`: a course whose lessons check themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrc_testbed.testbed.commands.options import Virtual, note_core
from mrc_testbed.testbed.commands.web import (
    Interactive,
    Metrics,
    MetricsLinger,
    MetricsTruth,
    WatchOptions,
    WebPort,
    shown,
    wait_for_the_room,
)
from mrc_testbed.testbed.consent import run_what_scenarios_name
from mrc_testbed.testbed.errors import ExitCode, UsageError
from mrc_testbed.testbed.kept import kept
from mrc_testbed.testbed.scenario.load.shipped import FOLDER
from mrc_testbed.testbed.terminal import say

if TYPE_CHECKING:
    from mrc_testbed.testbed.lessons.work import Work

LESSONS = FOLDER / "lessons"
LessonName = Annotated[
    str,
    typer.Argument(metavar="N", help="Number, name, a lesson's folder, or yours.", show_default=False),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder in which the lesson was started.")]
NewFolder = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="New folder. Default: the lesson's name.", show_default=False)
]
SeedByName = Annotated[
    bool, typer.Option("--seed-by-name", help="Draw the faults from the folder's name: other ones for each student.")
]
_Runs = Annotated[
    list[Path] | None,
    typer.Option("--run", metavar="RUN", help="Judge this run in place of a new one. Repeatable: one for each cell."),
]
_Web = Annotated[bool, typer.Option("--web", help="In a browser: the text beside the live fabric, and the answers.")]
_Again = Annotated[bool, typer.Option("--again", help="Run all again, also what was run already.")]


def list_lessons(
    course: Annotated[
        Path, typer.Argument(metavar="[COURSE]", help="Folder of a course.", show_default=False)
    ] = LESSONS,
) -> None:
    """List the lessons that are shipped, or those of a course."""
    lines = kept("lessons", lambda: _lines_of(course)) if course == LESSONS else _lines_of(course)
    for line in lines:
        say(line)


def _lines_of(course: Path) -> list[str]:
    from mrc_testbed.testbed.lessons.load import load_lesson
    from mrc_testbed.testbed.lessons.shelf import shipped_lessons
    from mrc_testbed.testbed.lessons.shown import list_lines

    folders = shipped_lessons(course)
    if not folders:
        raise UsageError(f"{course}: there is no lesson in it")
    return list(list_lines([load_lesson(folder) for folder in folders]))


def show(name: LessonName) -> None:
    """Print the text of a lesson."""
    from mrc_testbed.testbed.lessons.work import lesson_meant

    say(lesson_meant(name).told, end="")


def start(
    name: LessonName,
    folder: NewFolder = None,
    seed_by_name: SeedByName = False,
    virtual: Virtual = False,
    web: _Web = False,
    web_port: WebPort = None,
    interactive: Interactive = False,
) -> None:
    """Begin a lesson in a folder of your own; nothing that is there is written over. With --web a browser shows its
    text beside the live fabric, and takes the answers."""
    from mrc_testbed.testbed.lessons.course import join
    from mrc_testbed.testbed.lessons.shelf import find_lesson
    from mrc_testbed.testbed.lessons.work import start as begin

    watch = WatchOptions(web, web_port, interactive)
    watch.require()
    if virtual and not web:
        raise UsageError("--virtual: nothing is run yet; it is an option of `lesson check`, or goes with --web")
    lesson = find_lesson(name)
    work = begin(lesson, folder or Path(lesson.name), seed_by_name)
    if lesson.sealed:
        join(lesson)
    say(f"{work.folder}: {', '.join(name for _, name in lesson.handed_out())}")
    if web:
        _serve(work, virtual, watch)
        return
    say(f"read lesson.md there, fill in answers.yaml, then: mrc-testbed lesson check {work.folder}")


def check(
    folder: Folder = Path(),
    run: _Runs = None,
    virtual: Virtual = False,
    again: _Again = False,
    seed_by_name: SeedByName = False,
    web: _Web = False,
    web_port: WebPort = None,
    interactive: Interactive = False,
    metrics: Metrics = "",
    metrics_truth: MetricsTruth = False,
    metrics_linger: MetricsLinger = None,
) -> None:
    """Run what is not run yet, and judge scenario and answers by it. Exit status: 0 pass, 1 fail or not finished,
    2 bad input, 3 inconclusive."""
    run_what_scenarios_name()
    from mrc_testbed.testbed.app.lesson import CheckOptions, check_work
    from mrc_testbed.testbed.lessons.shown import grade_lines
    from mrc_testbed.testbed.lessons.work import open_work, with_seed_by_name
    from mrc_testbed.testbed.report.console import open_console

    watch = WatchOptions(web, web_port, interactive, metrics, metrics_truth, metrics_linger)
    watch.require()
    if run and (again or web):
        other = "--again makes new runs" if again else "--web makes its runs when the page asks"
        raise UsageError(f"{other}, and --run names one that is there: leave one of them out")
    if again and web:
        raise UsageError("--again: the page has no such choice; check with it here, then open the page")
    work = with_seed_by_name(open_work(folder), seed_by_name)
    if web:
        _serve(work, virtual, watch)
        return
    with shown(watch) as server:
        grade = check_work(work, CheckOptions(virtual, tuple(run or ()), again, audience=server), open_console())
        wait_for_the_room(server, grade.exit_code, terminal=False)
    for line in grade_lines(grade):
        say(line)
    note_core()
    raise typer.Exit(grade.exit_code)


def _serve(work: Work, virtual: bool, watch: WatchOptions) -> None:
    """Until Ctrl-C."""
    run_what_scenarios_name()
    from contextlib import suppress

    from mrc_testbed.testbed.app.lesson import CheckOptions
    from mrc_testbed.testbed.app.lesson_desk import serve_lesson
    from mrc_testbed.testbed.report.console import open_console

    with shown(watch, lesson=True) as server, suppress(KeyboardInterrupt):
        if server:
            say("until Ctrl-C; then go on with: mrc-testbed lesson check " + str(work.folder), err=True)
            serve_lesson(work, server, CheckOptions(virtual, quiet=True), open_console())


def grade(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Students' folders, or folders with such in them.", show_default=False),
    ],
    virtual: Virtual = False,
    again: _Again = False,
    seed_by_name: SeedByName = False,
    lesson: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="A lesson of your own, or a course, that students were given. Repeatable."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where grades.csv and grades.json go.")] = Path(),
) -> None:
    """Check the lessons of a class: a line for each, in grades.csv and grades.json. What a machine spoiled or a file
    lacks is said there, and ends nothing. Exit status: 0 whatever the grades; 3 if this machine could not judge some
    lesson."""
    from mrc_testbed.testbed.app.lesson import CheckOptions
    from mrc_testbed.testbed.app.lesson_grades import CSV_FILE, grade_all
    from mrc_testbed.testbed.lessons.grade import LessonMark
    from mrc_testbed.testbed.lessons.grades import GradedWork, lesson_folders
    from mrc_testbed.testbed.lessons.load import load_lesson
    from mrc_testbed.testbed.lessons.shelf import shipped_lessons
    from mrc_testbed.testbed.report.console import open_console

    own = [found for folder in lesson or () for found in shipped_lessons(folder) or (folder,)]
    teachers = {load_lesson(folder).name: folder for folder in own}
    works, left_out = lesson_folders(folders)
    for line in left_out:
        say(f"note: {line}", err=True)

    def tell(one: GradedWork) -> None:
        row = one.row
        reason = f": {row['reason']}" if row["reason"] else ""
        say(f"{row['verdict'].upper()} {row['student']} {row['lesson']}: {row['points']} of {row['of']}{reason}")

    options = CheckOptions(virtual, again=again, patient=True, quiet=True)
    graded = grade_all(works, teachers, options, seed_by_name, out, open_console(stderr=True), tell)
    say(out / CSV_FILE)
    if any(one.grade is None and one.mark is LessonMark.INCONCLUSIVE for one in graded):
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def hint(
    name: LessonName,
    number: Annotated[int, typer.Argument(metavar="K", min=1, help="Which hint; the first tells least.")] = 1,
) -> None:
    """Print a hint of a lesson."""
    from mrc_testbed.testbed.lessons.work import lesson_meant

    lesson = lesson_meant(name)
    if number > len(lesson.hints):
        raise UsageError(f"lesson {lesson.name} has {len(lesson.hints)} hints, not {number}")
    say(lesson.hints[number - 1])
    if number < len(lesson.hints):
        say(f"\nhint {number} of {len(lesson.hints)}; the next: mrc-testbed lesson hint {name} {number + 1}")


def solution(
    name: LessonName,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The key of the course, which the teacher hands out.", show_default=False),
    ] = None,
) -> None:
    """Print the solution of a lesson: the scenarios that are changed, and the answers. With the folder in which it was
    started the answers that only a run has are those of its runs."""
    from dataclasses import replace

    from mrc_testbed.testbed.app.lesson import solved_answers
    from mrc_testbed.testbed.lessons.course import opened
    from mrc_testbed.testbed.lessons.solution import solution_lines
    from mrc_testbed.testbed.lessons.work import is_work, lesson_meant, open_work

    with opened(lesson_meant(name), key) as lesson:
        answers = solved_answers(replace(open_work(Path(name)), lesson=lesson)) if is_work(name) else None
        for line in solution_lines(lesson, answers):
            say(line)


def course(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.", show_default=False)],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[N]...", help="Lessons, as above. Default: all that are shipped.", show_default=False),
    ] = None,
) -> None:
    """Make the folder of a course for a class: lessons without their solutions. These are in FOLDER-key.json, which
    the teacher hands out after the deadline (docs/teaching.md)."""
    from mrc_testbed.testbed.lessons.course import make_course
    from mrc_testbed.testbed.lessons.shelf import find_lesson, shipped_lessons

    lessons = [find_lesson(name) for name in names or map(str, shipped_lessons())]
    made, key = make_course(folder, lessons)
    say(
        f"{made}: {len(lessons)} lesson{'s' if len(lessons) > 1 else ''} for students; they begin with: "
        f"mrc-testbed lesson start {made}/{lessons[0].number or lessons[0].name} mine"
    )
    say(f"{key}: keep it; after the deadline: mrc-testbed lesson solution mine --key {key.name}")


def restore(folder: Folder = Path()) -> None:
    """Begin a lesson again in the folder where it was started; what was there is kept in it, in kept-UTC."""
    from mrc_testbed.testbed.lessons.work import restore as begin_anew

    work, kept = begin_anew(folder)
    say(f"{work.folder}: begun again; what was there is kept in {kept}")


def new(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.", show_default=False)]) -> None:
    """Make an empty lesson of your own, to be written over (docs/lessons.md)."""
    from mrc_testbed.testbed.lessons.new import new_lesson

    for path in new_lesson(folder):
        say(path)
    say(f"try it: mrc-testbed lesson start {folder} mine")
