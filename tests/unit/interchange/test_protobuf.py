"""Our decoder reads what the library of Protocol Buffers writes, and refuses what is no message."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from mrc_testbed.testbed.interchange.bounds import bounds_of
from mrc_testbed.testbed.interchange.chakra import ChakraNode, read_rank
from mrc_testbed.testbed.interchange.protobuf import Meter, WireError, fields, messages
from tests.unit.interchange.foreign import METADATA, varint

_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "double_val": (3, _Field.TYPE_DOUBLE),
    "float_val": (5, _Field.TYPE_FLOAT),
    "int32_val": (7, _Field.TYPE_INT32),
    "int64_val": (9, _Field.TYPE_INT64),
    "uint32_val": (11, _Field.TYPE_UINT32),
    "uint64_val": (13, _Field.TYPE_UINT64),
    "sint32_val": (15, _Field.TYPE_SINT32),
    "sint64_val": (17, _Field.TYPE_SINT64),
    "fixed32_val": (19, _Field.TYPE_FIXED32),
    "fixed64_val": (21, _Field.TYPE_FIXED64),
    "sfixed32_val": (23, _Field.TYPE_SFIXED32),
    "sfixed64_val": (25, _Field.TYPE_SFIXED64),
    "bool_val": (27, _Field.TYPE_BOOL),
    "string_val": (29, _Field.TYPE_STRING),
}


def _library() -> Any:
    """The class of a node, as the schema of Chakra has its fields."""
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="et", syntax="proto3")
    attribute = file.message_type.add(name="Attribute")
    attribute.field.add(name="name", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    attribute.oneof_decl.add(name="value")
    for name, (number, kind) in _TYPES.items():
        attribute.field.add(name=name, number=number, type=kind, label=_Field.LABEL_OPTIONAL, oneof_index=0)
    node = file.message_type.add(name="Node")
    single = {"id": (1, _Field.TYPE_UINT64), "name": (2, _Field.TYPE_STRING), "type": (3, _Field.TYPE_INT32)}
    single |= {"start_time_micros": (6, _Field.TYPE_UINT64), "duration_micros": (7, _Field.TYPE_UINT64)}
    for name, (number, kind) in single.items():
        node.field.add(name=name, number=number, type=kind, label=_Field.LABEL_OPTIONAL)
    for name, number in (("ctrl_deps", 4), ("data_deps", 5)):
        node.field.add(name=name, number=number, type=_Field.TYPE_UINT64, label=_Field.LABEL_REPEATED)
    node.field.add(
        name="attr", number=10, type=_Field.TYPE_MESSAGE, label=_Field.LABEL_REPEATED, type_name=".et.Attribute"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("et.Node"))


NODE = _library()
_VALUES = st.one_of(
    st.tuples(st.just("int32_val"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("int64_val"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("sint32_val"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("sint64_val"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.sampled_from(["uint32_val", "fixed32_val"]), st.integers(0, 2**32 - 1)),
    st.tuples(st.sampled_from(["uint64_val", "fixed64_val"]), st.integers(0, 2**64 - 1)),
    st.tuples(st.just("sfixed32_val"), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just("sfixed64_val"), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just("double_val"), st.floats(allow_nan=False)),
    st.tuples(st.just("bool_val"), st.booleans()),
    st.tuples(st.just("string_val"), st.text()),
)
_IDS = st.lists(st.integers(0, 2**64 - 1), max_size=4)


@given(st.integers(0, 2**64 - 1), st.text(), st.integers(0, 10), _IDS, _IDS, st.integers(0, 2**60), _VALUES)
@settings(max_examples=100, deadline=None)
def test_nodes_of_the_library_are_read(
    tmp_path_factory: pytest.TempPathFactory,
    identity: int,
    name: str,
    kind: int,
    control: list[int],
    data: list[int],
    us: int,
    value: tuple[str, Any],
) -> None:
    made = NODE(id=identity, name=name, type=kind, ctrl_deps=control, data_deps=data, duration_micros=us)
    made.attr.add(name="root", **{value[0]: value[1]})
    content = made.SerializeToString()
    file = tmp_path_factory.mktemp("et") / "t.0.et"
    file.write_bytes(b"".join(varint(len(one)) + one for one in (METADATA, content)))
    (found,) = read_rank(file, Meter(bounds_of(0))).nodes
    assert found == ChakraNode(identity, kind, list(dict.fromkeys((*control, *data))), us, {"root": value[1]})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x08", "the end comes in the middle of a number"),
        (b"\x08" + b"\x80" * 10 + b"\x01", "a number of more than 10 bytes"),
        (b"\x00\x01", "a field with the number 0"),
        (b"\x0b", "the unknown wire type 3"),
        (b"\x0a\x05abc", "a field of 5 bytes, and only 3 are left"),
        (b"\x0d\x01", "a field of 4 bytes, and only 1 are left"),
        (b"\x0a" + varint(1 << 40), f"a field of {1 << 40} bytes"),
    ],
)
def test_what_is_no_message_is_refused(content: bytes, says: str) -> None:
    with pytest.raises(WireError, match=says):
        list(fields(content))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (varint(2 << 30), "a message of 2147483648 bytes; at most"),
        (b"\x80" * 11, "a number of more than 10 bytes"),
        (b"\x80", "the end comes in the middle"),
        (b"\x05abc", "a message of 5 bytes, and only 3 are left"),
    ],
)
def test_lengths_that_cannot_be_are_refused_before_they_take_memory(content: bytes, says: str) -> None:
    with pytest.raises(WireError, match=says):
        list(messages(io.BytesIO(content)))


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        list(fields(content))
        list(messages(io.BytesIO(content)))
    except WireError as error:
        assert 0 <= error.at <= len(content)  # noqa: PT017, either way is right


def test_a_real_file_may_have_attributes_in_its_metadata(tmp_path: Path) -> None:
    """As the examples of custom collectives have: a schema and what it was made from, and no version."""
    metadata = b"\x12\x08\x0a\x06schema"
    file = tmp_path / "t.0.et"
    file.write_bytes(b"".join(varint(len(one)) + one for one in (metadata, b"\x08\x01\x18\x04")))
    assert [node.type for node in read_rank(file, Meter(bounds_of(0))).nodes] == [4]
