"""Whether what a lesson judges can be found in its own scenarios: figures, faults, cells and keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from mrc_testbed.testbed.errors import Problem, ScenarioError
from mrc_testbed.testbed.expect import METRICS, ExpectError, Figure, parse_expectation, parse_figure
from mrc_testbed.testbed.lessons.beside import Beside, beside
from mrc_testbed.testbed.lessons.cells import InCell, bracketed, is_meant
from mrc_testbed.testbed.lessons.expression import ExpressionTerm, TermKind
from mrc_testbed.testbed.lessons.kinds import PathAddress, RetiredEv, TargetOf
from mrc_testbed.testbed.lessons.lesson import PASSES, Lesson, LessonQuestion, Stage
from mrc_testbed.testbed.lessons.reading import YamlFile
from mrc_testbed.testbed.lessons.requirements import misfit
from mrc_testbed.testbed.scenario import Scenario, load_cells
from mrc_testbed.testbed.scenario.rules.expect_rules import FigureContext, figure_mistakes
from mrc_testbed.testbed.scenario.text.source import KeyPath


@dataclass(frozen=True, slots=True)
class CellScenario:
    """One cell of one run of a lesson, before it is run."""

    run: str
    settings: tuple[str, ...]
    scenario: Scenario


def cells_of(lesson: Lesson, stage: Stage) -> list[CellScenario]:
    """The cells of all its runs. Raises ScenarioError."""
    return [
        CellScenario(run, tuple(map(str, cell.settings)), cell.scenario)
        for run in lesson.runs
        for cell in load_cells(lesson.scenario_file(run, stage))
    ]


def unfitting(lesson: Lesson, check: YamlFile) -> list[Problem]:
    """All mistakes of that kind, with those of the scenarios themselves."""
    try:
        starters = cells_of(lesson, Stage.START)
        solved = cells_of(lesson, Stage.SOLUTION)
    except ScenarioError as error:
        return list(error.problems)
    _Fitting(lesson, check, solved).note()
    by_run = {one.run: one.scenario for one in reversed(starters)}
    solutions = cache(partial(_solution_beside_start, lesson))
    for index, required in enumerate(lesson.requires):
        wrong = misfit(required.condition, by_run[required.run])
        if not wrong and (why := required.unmet(solutions(required.run))):
            wrong = f"the solution does not meet it: {why}"
        if wrong:
            check.complain(("requires", index), wrong)
    return check.problems


def _solution_beside_start(lesson: Lesson, run: str) -> tuple[Beside, ...]:
    return tuple(beside(lesson.scenario_file(run, Stage.SOLUTION), lesson.scenario_file(run, Stage.START)))


class _Fitting:
    """The solution's cells are those that students come to, so they are what names are looked up in."""

    def __init__(self, lesson: Lesson, check: YamlFile, cells: Sequence[CellScenario]) -> None:
        self._lesson = lesson
        self._check = check
        self._cells = cells
        self._contexts = {id(one): FigureContext.of_scenario(one.scenario) for one in cells}

    def note(self) -> None:
        """Note every mistake in the file."""
        for index, wanted in enumerate(self._lesson.expect):
            written = self._check.source.data["expect"][index]
            self._expectation(("expect", index, *(["that"] if isinstance(written, dict) else [])), wanted.that)
        for question in self._lesson.questions:
            self._question(("answers", question.name), question)

    def _expectation(self, path: KeyPath, that: InCell) -> None:
        cells = self._meant(path, that.words)
        if that.text == PASSES or not cells:
            return
        try:
            figure = parse_expectation(that.text).figure
        except ExpectError as error:
            self._check.complain(path, error.message, column=error.column)
            return
        self._figure(path, figure, cells)

    def _question(self, path: KeyPath, question: LessonQuestion) -> None:
        kind = question.kind
        for term in kind.terms:
            self._term((*path, kind.word), term)
        if isinstance(kind, TargetOf):
            self._fault((*path, kind.word), kind.fault.text, kind.fault.words)
        elif isinstance(kind, RetiredEv):
            self._fault((*path, "fault"), kind.fault, kind.words)
        elif isinstance(kind, PathAddress) and self._cells:
            wrong = kind.misfit(self._cells[0].scenario.written_shape().family)
            if wrong:
                self._check.complain((*path, kind.word), wrong)

    def _term(self, path: KeyPath, term: ExpressionTerm) -> None:
        if term.kind is TermKind.PLAN:
            return
        cells = self._meant(path, term.words)
        if len(cells) > 1:
            names = ", ".join(bracketed(one.settings or (one.run,)) for one in cells[:3])
            self._check.complain(path, f"{{{term.text}}}: which of the runs is meant? Write for example {names}")
        elif cells and term.kind is TermKind.FIGURE:
            try:
                self._figure(path, parse_figure(term.text), cells)
            except ExpectError as error:
                self._check.complain(path, f"{{{term.text}}}: {error.message}")

    def _figure(self, path: KeyPath, figure: Figure, cells: Sequence[CellScenario]) -> None:
        for message in dict.fromkeys(self._wrong(figure, cells)):
            self._check.complain(path, message)

    def _wrong(self, figure: Figure, cells: Sequence[CellScenario]) -> Iterator[str]:
        for one in cells:
            for _, message in figure_mistakes(figure, self._contexts[id(one)]):
                yield message
            if figure.metric.name in METRICS and not figure.metric.known_with(one.scenario.transport.known):
                yield f"{figure.metric.name} is not known of {one.scenario.transport}"

    def _fault(self, path: KeyPath, name: str, words: Sequence[str]) -> None:
        there = {one.fault for cell in self._meant(path, words) for one in cell.scenario.occurrences}
        if there and name not in there:
            self._check.complain(path, f"there is no fault named {name!r}; there are {', '.join(sorted(there))}")

    def _meant(self, path: KeyPath, words: Sequence[str]) -> list[CellScenario]:
        found = [one for one in self._cells if is_meant(words, one.run, one.settings)]
        if not found:
            there = ", ".join(dict.fromkeys(bracketed(one.settings or (one.run,)) for one in self._cells))
            self._check.complain(
                path, f"there is no run {bracketed(words)}; there {f'are {there}' if there else 'is none'}"
            )
        return found
