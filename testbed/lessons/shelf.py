"""Which lessons there are: the shipped ones by number and name, and any folder by its path."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.lessons.lesson import COURSE_FILE, Lesson
from mrc_testbed.testbed.lessons.load import load_lesson
from mrc_testbed.testbed.scenario.load.shipped import CHECK_FILE, FOLDER

LESSONS = FOLDER / "lessons"


def shipped_lessons(folder: Path = LESSONS) -> tuple[Path, ...]:
    """The folders of the shipped lessons, in order."""
    return tuple(sorted(path.parent for path in folder.glob(f"*/{CHECK_FILE}")))


def find_lesson(name: str) -> Lesson:
    """By number (`4`), name (`04-three-round-trips`, `three-round-trips`) or path; those of a course with its folder
    (`term-1/4`). Raises UsageError, ScenarioError."""
    return load_lesson(lesson_folder(name))


def lesson_folder(name: str) -> Path:
    """The folder that is meant. Raises UsageError."""
    folders = shipped_lessons()
    course = Path(name).parent
    if (course / COURSE_FILE).is_file():
        folders, name = shipped_lessons(course), Path(name).name
    found = next((folder for folder in folders if name in _names(folder.name)), None)
    if found is not None:
        return found
    if Path(name).is_dir():
        return Path(name)
    names = [folder.name for folder in folders]
    hint = did_you_mean(name, [each for folder in names for each in _names(folder)])
    raise UsageError(f"there is no lesson {name!r}{hint or '; `mrc-testbed lesson list` shows all'}")


def _names(folder: str) -> tuple[str, ...]:
    digits, _, rest = folder.partition("-")
    return (folder, digits, str(int(digits)), rest) if digits.isdecimal() and rest else (folder,)
