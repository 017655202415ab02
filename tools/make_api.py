"""Writes the reference of docs/api.md from docstrings: `python tools/make_api.py`. A test compares."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/api.md"
API = ROOT / "src/mrc_testbed/api.py"
MARK = "<!-- What follows is written by tools/make_api.py, from docstrings. -->\n"
WIDTH = 120
SHORT = 60
"""Characters of a constant's value that is shown."""

Definition = ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign


def text() -> str:
    """The whole page: what is written by hand, to the mark, and an entry for each name of its tables."""
    head = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    entries = (_entry(name, *_found(name, API)) for name in re.findall(r"^\| `(\w+)` \|", head, re.M))
    return "\n".join([head + MARK, "## Reference", *(line for entry in entries for line in ("", *entry)), ""])


def _found(name: str, file: Path) -> tuple[Definition, str]:
    """The definition of a name and its docstring, of the module that the file's imports lead to."""
    module = ast.parse(file.read_text(encoding="utf-8"))
    for node, said in _documented(module.body):
        if _name(node) == name:
            return node, said
    for other in ast.walk(module):
        if isinstance(other, ast.ImportFrom) and name in {alias.name for alias in other.names}:
            return _found(name, _file(str(other.module)))
    raise LookupError(f"{name} is not defined in {file}")


def _file(module: str) -> Path:
    """Of a module of ours, `mrc_testbed.ROOM...`."""
    place = ROOT.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _documented(body: list[ast.stmt]) -> Iterator[tuple[Definition, str]]:
    """Definitions with their docstrings: inside a class or function, below a constant or field."""
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node, ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            below = after.value if isinstance(after, ast.Expr) else None
            yield node, str(below.value) if isinstance(below, ast.Constant) else ""


def _name(node: Definition) -> str:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return node.name
    return ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])


def _entry(name: str, node: Definition, said: str) -> Iterator[str]:
    yield from (f"### `{name}`", "", "```python", _written(node), "```", "", *_prose(said))
    if not isinstance(node, ast.ClassDef):
        return
    members = [(part, words) for part, words in _documented(node.body) if not _name(part).startswith("_")]
    if members:
        yield ""
    for part, words in members:
        yield from _member(part, words)


def _member(node: Definition, said: str) -> Iterator[str]:
    kind = "property " if _is_property(node) else ""
    signature = f"{kind}`{_written(node).removeprefix('def ')}`" + (":" if said else "")
    yield from _wrapped(signature, "- ", "  ")
    if said:
        yield from _wrapped(_escaped(" ".join(said.split())), "  ", "  ")


def _written(node: Definition) -> str:
    """A definition on one line, without its body."""
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return f"class {node.name}({bases})" if bases else f"class {node.name}"
    if isinstance(node, ast.FunctionDef):
        arguments = re.sub(r"^(?:self|cls)(?:, )?", "", ast.unparse(node.args))
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return f"{node.name}{returns}" if _is_property(node) else f"def {node.name}({arguments}){returns}"
    whole = ast.unparse(node)
    typed = f": {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
    return whole if len(whole) <= SHORT else _name(node) + typed


def _is_property(node: Definition) -> bool:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return bool({"property", "cached_property"} & {ast.unparse(each) for each in decorators})


def _prose(said: str) -> Iterator[str]:
    """Paragraphs of a docstring as Markdown, wrapped."""
    paragraphs = re.split(r"\n\s*\n", said.strip())
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ""
        yield from _wrapped(_escaped(" ".join(paragraph.split())), "", "")


def _wrapped(words: str, first: str, others: str) -> list[str]:
    wrapper = textwrap.TextWrapper(WIDTH, first, others, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(words)


def _escaped(words: str) -> str:
    parts = re.split(r"(`[^`]*`)", words)
    return "".join(part if number % 2 else re.sub(r"[*<]", r"\\\g<0>", part) for number, part in enumerate(parts))


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
