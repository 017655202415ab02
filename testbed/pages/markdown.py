"""Markdown of lessons as a tree of elements for a page. Pure.

A node is a text, or a list of a tag, its attributes and its nodes. Scripts make elements of it, so a text can never be
markup: HTML in a lesson is shown as text, and a comment is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

Node = str | list[Any]
_READER = MarkdownIt("commonmark", {"html": False}).enable("table")
_WEB = ("http://", "https://")


def nodes(text: str) -> list[Node]:
    """The blocks of a text: headings, one level lower than written, paragraphs, lists, tables, code."""
    return _joined(SyntaxTreeNode(_READER.parse(re.sub(r"<!--.*?-->", "", text, flags=re.S))))


def _joined(parent: SyntaxTreeNode) -> list[Node]:
    """What is inside an element, with texts that follow each other as one."""
    made: list[Node] = []
    for node in (found for child in parent.children for found in _made(child) if found):
        if isinstance(node, str) and made and isinstance(made[-1], str):
            made[-1] += node
        else:
            made.append(node)
    return made


def _made(node: SyntaxTreeNode) -> Iterable[Node]:
    if node.type == "inline" or (node.type == "paragraph" and node.hidden):
        return _joined(node)
    if node.type in ("text", "softbreak", "image"):
        return ["\n" if node.type == "softbreak" else node.content]
    return _element(node)


def _element(node: SyntaxTreeNode) -> Iterator[Node]:
    if node.type in ("fence", "code_block"):
        yield ["pre", {}, node.content.removesuffix("\n")]
    elif node.type == "code_inline":
        yield ["code", {}, node.content]
    elif node.type == "heading":
        yield [f"h{min(int(node.tag[1]) + 1, 6)}", {}, *_joined(node)]
    elif node.type == "link":
        yield _link(node)
    else:
        yield [node.tag, {"start": node.attrs["start"]} if "start" in node.attrs else {}, *_joined(node)]


def _link(node: SyntaxTreeNode) -> Node:
    """A link to another site is one; of others, to files of the project, the text stays."""
    target = str(node.attrs["href"])
    attributes = {"href": target, "target": "_blank", "rel": "noopener"}
    return ["a", attributes, *_joined(node)] if target.startswith(_WEB) else ["span", {}, *_joined(node)]
