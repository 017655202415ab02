"""Plain words in everything that people read: docs, scenarios, lessons, docstrings and comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNCLEAR = re.compile(
    r"\bso[\s#]+(?:many|much)\b|\bwhoever\b|\bof[\s#]+which\b|\banew\b|(?<!-)\b(?:stands?|stood|standing)\b(?!-)",
    re.IGNORECASE,
)
"""A quantity without its number, a clause that is read twice, a verb that says less than `is`."""

PAGES = ("*.md", "docs/**/*.md", "testbed/**/*.md", "changelog.d/*.md", ".github/**/*.md")
SHIPPED = ("scenarios/**/*.yaml", "scenarios/**/*.md", "scenarios/**/*.py", "docs/examples/**/*.*")
WIDTH = 120
LONGEST_CELL = 200
"""Characters that can be read in a terminal and in a diff."""

QUOTED = frozenset(
    ("CONTRIBUTING.md", words) for words in ("of which", "so many", "whoever", "anew", "stands", "so much")
)
"""(file, text) of quotes that keep their words."""

CODE = ("action", "benchmarks", "docs", "hosts", "scenarios", "src", "testbed", "tests", "tools", "topos")
"""Folders with Python files."""
PROGRAM = ("hosts", "src", "testbed", "topos")
"""Those of them whose strings users read."""


def unclear(text: str) -> Iterator[tuple[int, str]]:
    """(line, words) of what is to be said in plain words."""
    for match in UNCLEAR.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[0]


def remarks(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of the docstrings, also those below constants, and of the comments of a Python file; of none where
    nothing in the whole file is unclear."""
    if not UNCLEAR.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def spoken(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of all other strings of a Python file: help, descriptions of keys, messages, words of pages."""
    tree = ast.parse(source)
    remarked = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in remarked:
            yield node.lineno, node.value


def files(*patterns: str) -> list[Path]:
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()})


def told(path: Path, line: int, words: str) -> str:
    return f"{path.relative_to(ROOT)}:{line}: {words!r}"


def in_whole(path: Path) -> list[str]:
    name = str(path.relative_to(ROOT))
    found = unclear(path.read_text(encoding="utf-8"))
    return [told(path, line, words) for line, words in found if (name, words) not in QUOTED]


def in_parts(path: Path, parts: Callable[[str], Iterator[tuple[int, str]]]) -> list[str]:
    said = parts(path.read_text(encoding="utf-8"))
    return [told(path, first + line - 1, words) for first, text in said for line, words in unclear(text)]


def test_pages_and_scenarios_say_it_in_plain_words() -> None:
    assert [line for path in files(*PAGES, *SHIPPED) for line in in_whole(path)] == []


@pytest.mark.parametrize("folder", CODE)
def test_docstrings_and_comments_say_it_in_plain_words(folder: str) -> None:
    assert [line for path in files(f"{folder}/**/*.py", f"{folder}/*.py") for line in in_parts(path, remarks)] == []


@pytest.mark.parametrize("folder", PROGRAM)
def test_what_the_program_says_is_in_plain_words(folder: str) -> None:
    assert [line for path in files(f"{folder}/**/*.py") for line in in_parts(path, spoken)] == []


def test_scripts_and_templates_of_pages_say_it_in_plain_words() -> None:
    assert [line for path in files("testbed/**/*.js", "testbed/**/*.html") for line in in_whole(path)] == []


@pytest.mark.parametrize(
    "text", ["so\nmany", "So much", "whoever", "of\n# which", "anew", "it stands in a file", "stood"]
)
def test_unclear_words_are_found(text: str) -> None:
    assert len(list(unclear(f"Here {text}."))) == 1


@pytest.mark.parametrize(
    "text", ["standard", "outstanding", "a stand-in", "so that many", "understand", "of a which-key"]
)
def test_other_words_are_not(text: str) -> None:
    assert not list(unclear(text))


def test_remarks_are_docstrings_and_comments_alone() -> None:
    source = '"""Head."""\n\nX = "so much"  # so many\n"""Below\nof which."""\n'
    assert [(line, words) for first, text in remarks(source) for line, words in unclear(text)] == [
        (2, "of which"),
        (1, "so many"),
    ]


def test_what_is_said_is_in_all_other_strings() -> None:
    source = '"""so many"""\n\nX = Field(description="so much", help=f"of which {X}")\n'
    assert [words for _, text in spoken(source) for _, words in unclear(text)] == ["so much", "of which"]


@pytest.mark.parametrize("page", files(*PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_cell_of_a_table_holds_a_paragraph(page: Path) -> None:
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cells = [cell.strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]
    assert [cell for cell in cells if len(cell) > LONGEST_CELL] == [], "make a list of the table"


@pytest.mark.parametrize("page", files(*PAGES, "scenarios/**/*.md"), ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_wrapped(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "!")) and " " in line.strip()]
    assert [line for line in lines if len(line) > WIDTH] == []
