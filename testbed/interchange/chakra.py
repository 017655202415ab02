"""Chakra execution traces, schema 0.0.4: a file a rank, `NAME.RANK.et`, of messages behind their lengths, also behind
gzip. The first is the metadata, each other one a node (mlcommons/chakra, `et_def.proto`)."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from mrc_testbed.testbed.interchange.protobuf import Meter, WireError, WireField, fields, messages
from mrc_testbed.testbed.interchange.text import FormatError, require_file, unreadable
from mrc_testbed.testbed.workloads.graph import MAX_NODES, MAX_RANKS

METADATA, LOAD, STORE, COMP, COMM_SEND, COMM_RECV, COLLECTIVE = range(1, 8)
MOST_TYPE = 10
VERSION = "0.0.4"
_GZIP = b"\x1f\x8b"
_NAME = re.compile(r"(?P<name>.+)\.(?P<rank>[0-9]{1,9})\.et(?P<packed>\.gz)?", re.ASCII)
_UNSIGNED, _SIGNED, _ZIGZAG, _FLAG, _TEXT = (11, 13), (7, 9), (15, 17), 27, 29
_FIXED = {3: "<d", 5: "<f", 19: "<I", 21: "<Q", 23: "<i", 25: "<q"}
_FLAGS = 28
_READ = frozenset(
    ("comm_dst", "comm_size", "comm_src", "comm_tag", "comm_type", "is_cpu_op", "num_ops", "pg_name", "root")
)
"""Attributes; what no other reader here asks for is not kept."""
_MOST_TEXT_BYTES = 256


@dataclass(slots=True)
class ChakraNode:
    """A node as it is in the file. Times in us. `attributes` that are read, and have a single value or truth values."""

    id: int = 0
    type: int = 0
    needs: list[int] = field(default_factory=list)
    duration_us: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ChakraRank:
    """The trace of one rank."""

    file: Path
    version: str
    nodes: list[ChakraNode]

    def wrong(self, node: ChakraNode | None, reason: str) -> FormatError:
        """A mistake of a node."""
        return FormatError(self.file, f"node {node.id}" if node else "", reason)


def files_of(file: Path) -> list[Path]:
    """The files of all ranks of a trace, by rank; `file` is any of them. Raises FormatError where one is missing."""
    require_file(file)
    found = _NAME.fullmatch(file.name)
    if not found:
        return [file]
    packed = found["packed"] or ""
    ranks: dict[int, Path] = {}
    for other in file.parent.glob(f"{_quoted(found['name'])}.*.et{packed}"):
        same = _NAME.fullmatch(other.name)
        if same and same["name"] == found["name"]:
            ranks[int(same["rank"])] = other
    if max(ranks) >= MAX_RANKS:
        raise FormatError(file, "", f"rank {max(ranks)}; at most {MAX_RANKS} ranks are read")
    for rank in range(max(ranks)):
        if rank not in ranks:
            name = f"{found['name']}.{rank}.et{packed}"
            raise FormatError(file, "", f"{name} is missing beside it: there are ranks up to {max(ranks)}")
    return [ranks[rank] for rank in sorted(ranks)]


def _quoted(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def read_rank(file: Path, meter: Meter) -> ChakraRank:
    """The trace of one rank; `meter` counts over all of them. Raises FormatError."""
    require_file(file)
    try:
        with _opened(file) as stream:
            return _rank(file, stream, meter)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(file, "", f"its gzip is broken: {error}") from None
    except OSError as error:
        raise unreadable(file, error) from None


def _opened(file: Path) -> BinaryIO:
    with file.open("rb") as content:
        packed = content.read(2) == _GZIP
    return cast("BinaryIO", gzip.open(file)) if packed else file.open("rb")


def _rank(file: Path, stream: BinaryIO, meter: Meter) -> ChakraRank:
    found = ChakraRank(file, "", [])
    seen: set[int] = set()
    at = 0
    try:
        for number, (begin, content) in enumerate(messages(stream)):
            at = begin
            meter.bytes(len(content))
            if not number:
                found.version = _version(content, meter)
                continue
            if len(found.nodes) == MAX_NODES:
                raise FormatError(file, f"byte {at}", f"more than {MAX_NODES} nodes")
            node = _node(content, meter)
            if node.id in seen:
                raise found.wrong(node, "a second node with this id")
            seen.add(node.id)
            found.nodes.append(node)
    except WireError as error:
        raise FormatError(file, f"byte {max(at, error.at)}", str(error)) from None
    if not at and not found.nodes:
        raise FormatError(file, "", "has no nodes")
    return found


def _version(content: bytes, meter: Meter) -> str:
    """Of the metadata, which has it as text."""
    for one in _counted(content, meter):
        if one.key == 1:
            if one.content is None:
                raise WireError(0, "the first message is no metadata of Chakra")
            return _text(one)
    return ""


def _counted(content: bytes, meter: Meter) -> Iterator[WireField]:
    for one in fields(content):
        meter.fields(1)
        yield one


def _node(content: bytes, meter: Meter) -> ChakraNode:
    node = ChakraNode()
    needs: dict[int, None] = {}
    for one in _counted(content, meter):
        match one.key:
            case 1:
                node.id = one.number
            case 3:
                node.type = one.number
            case 4 | 5:
                meter.fields(len(one.content or b""))
                needs.update(dict.fromkeys(one.numbers()))
            case 7:
                node.duration_us = one.number
            case 10:
                node.attributes.update(_attribute(one, meter))
    node.needs = list(needs)
    return node


def _attribute(one: WireField, meter: Meter) -> Iterator[tuple[str, Any]]:
    """Name and value, where it is one that is read, and a single value or truth values."""
    name, value = "", None
    for part in _counted(one.content or b"", meter):
        if part.key == 1:
            name = _text(part)
        elif name in _READ or not name:
            value = _value(part, value)
    if name in _READ and value is not None:
        yield name, value


def _value(part: WireField, usual: Any) -> Any:
    """What a field of an attribute says; `usual` of one that is no value."""
    if part.key in _UNSIGNED:
        return part.number
    if part.key in _SIGNED:
        return part.signed
    if part.key in _ZIGZAG:
        return part.zigzag
    if part.key in _FIXED:
        return part.fixed(_FIXED[part.key])
    if part.key == _FLAG:
        return bool(part.number)
    if part.key == _FLAGS:
        return [bool(number) for inner in fields(part.content or b"") for number in inner.numbers()]
    return _text(part) if part.key == _TEXT else usual


def _text(one: WireField) -> str:
    content = one.content or b""
    if len(content) > _MOST_TEXT_BYTES:
        raise WireError(0, f"a text of {len(content)} bytes; at most {_MOST_TEXT_BYTES} are read")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise WireError(0, "text that is not in UTF-8") from None
