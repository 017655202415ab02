"""Markdown as a tree of elements for a page: what lessons are written in, and no more. Pure.

A node is a text, or a list of a tag, its attributes and its nodes. Scripts make elements of it, so a text can never be
markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Node = str | list[Any]
_FENCE = re.compile(r"\s*```")
_HEADING = re.compile(r"(#{1,4})\s+(.*)")
_ITEM = re.compile(r"(\s*)(?:[-*]|(\d+)[.)])\s+(.*)")
_RULE = re.compile(r"\|?[\s:|-]+\|?")
_INLINE = re.compile(r"(`+)(.+?)\1|\*\*(.+?)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)\s]+)\)", re.S)
_WEB = ("http://", "https://")


def nodes(text: str) -> list[Node]:
    """The blocks of a text: headings, paragraphs, lists, tables, code."""
    return list(_blocks(re.sub(r"<!--.*?-->", "", text, flags=re.S).splitlines()))


def _blocks(lines: list[str]) -> Iterator[Node]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif _FENCE.match(line):
            end = next((n for n in range(at + 1, len(lines)) if _FENCE.match(lines[n])), len(lines))
            yield ["pre", {}, "\n".join(lines[at + 1 : end])]
            at = end + 1
        elif found := _HEADING.fullmatch(line.strip()):
            yield [f"h{len(found[1]) + 1}", {}, *inline(found[2])]
            at += 1
        else:
            end = _end(lines, at)
            yield _block(lines[at:end])
            at = end


def _end(lines: list[str], at: int) -> int:
    """Where a paragraph, list or table ends: before an empty line, a heading or code; a list begins anew."""
    item = _ITEM.match(lines[at])
    for n in range(at + 1, len(lines)):
        line = lines[n]
        if not line.strip() or _FENCE.match(line) or _HEADING.fullmatch(line.strip()):
            return n
        if not item and _ITEM.match(line):
            return n
    return len(lines)


def _block(lines: list[str]) -> Node:
    rows = [_cells(line) for line in lines if not _RULE.fullmatch(line.strip())]
    if lines[0].lstrip().startswith("|") and rows:
        return _table(rows)
    return _list(lines) if _ITEM.match(lines[0]) else ["p", {}, *inline("\n".join(lines))]


def _list(lines: list[str]) -> Node:
    """Items may go on in the next lines; lists inside of lists become items of the same list."""
    items: list[str] = []
    for line in lines:
        found = _ITEM.match(line)
        if found:
            items.append(found[3])
        else:
            items[-1] += f"\n{line.strip()}"
    first = _ITEM.match(lines[0])
    number = first[2] if first else None
    made: list[Node] = [["li", {}, *inline(item)] for item in items]
    return ["ol", {"start": number}, *made] if number else ["ul", {}, *made]


def _table(rows: list[list[str]]) -> Node:
    head, body = rows[0], rows[1:]
    made: list[Node] = [["tr", {}, *(["td", {}, *inline(cell)] for cell in row)] for row in body]
    return ["table", {}, ["tr", {}, *(["th", {}, *inline(cell)] for cell in head)], *made]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def inline(text: str) -> list[Node]:
    """Code, bold, italics and links. A link to another site is one; of others, to files of the project, the text
    stays."""
    found: list[Node] = []
    at = 0
    for match in _INLINE.finditer(text):
        found += [text[at : match.start()]] if match.start() > at else []
        found.append(_inline(match))
        at = match.end()
    return [*found, *([text[at:]] if at < len(text) else [])]


def _inline(match: re.Match[str]) -> Node:
    _, code, bold, italic, words, target = match.groups()
    if code is not None:
        return ["code", {}, code.strip()]
    if bold is not None:
        return ["b", {}, *inline(bold)]
    if italic is not None:
        return ["i", {}, *inline(italic)]
    if target.startswith(_WEB):
        return ["a", {"href": target, "target": "_blank", "rel": "noopener"}, *inline(words)]
    return ["span", {}, *inline(words)]
