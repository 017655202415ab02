"""The few libbpf calls that load a program into the kernel. iproute2 depends on libbpf; bpftool is not needed.

A refusal is a FabricError with the last message of libbpf or the verifier; a missing library or a damaged object file,
which the user can fix, is a MissingCapability with the fix.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from itertools import pairwise
from pathlib import Path

from mrc_testbed.testbed.errors import FabricError, MissingCapability

_LIBRARY = "libbpf.so.1"
_WARNING = 0
_MESSAGE_BYTES = 4 << 20
"""A verifier log is one message with its reason near the end."""
_ACTION = "load the port program"

# int (*)(enum libbpf_print_level, const char *, va_list); a va_list is passed as a pointer on amd64 and arm64.
_PrintFunction = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)
_SIGNATURES: tuple[tuple[str, object, list[object]], ...] = (
    ("bpf_object__open", c_void_p, [c_char_p]),
    ("bpf_object__load", c_int, [c_void_p]),
    ("bpf_object__close", None, [c_void_p]),
    ("bpf_object__find_map_by_name", c_void_p, [c_void_p, c_char_p]),
    ("bpf_object__find_program_by_name", c_void_p, [c_void_p, c_char_p]),
    ("bpf_map__set_max_entries", c_int, [c_void_p, c_uint32]),
    ("bpf_map__set_initial_value", c_int, [c_void_p, c_char_p, c_size_t]),
    ("bpf_map__value_size", c_uint32, [c_void_p]),
    ("bpf_map__fd", c_int, [c_void_p]),
    ("bpf_map__pin", c_int, [c_void_p, c_char_p]),
    ("bpf_obj_get", c_int, [c_char_p]),
    ("bpf_program__fd", c_int, [c_void_p]),
    ("bpf_program__pin", c_int, [c_void_p, c_char_p]),
    ("bpf_obj_get_info_by_fd", c_int, [c_int, c_void_p, POINTER(c_uint32)]),
)


class BpfObject:
    """An object file of BPF programs and array maps: open it, size its maps, load it, pin programs and open maps."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises MissingCapability if libbpf is missing or cannot read the file."""
        self._messages: list[str] = []
        self._library = _library()
        self._print = _PrintFunction(self._hear)
        self._library.libbpf_set_print(self._print)
        self._object = self._library.bpf_object__open(str(path).encode())
        if not self._object:
            self._library.libbpf_set_print(None)
            raise MissingCapability(f"{path} is damaged: {self._reason()}", f"remove {path} and run make setup")

    def map_value_bytes(self, name: str) -> int:
        """Size of one value of a map."""
        return int(self._library.bpf_map__value_size(self._map(name)))

    def set_constants(self, values: bytes) -> None:
        """Write what the program has as constants (its section .rodata), before it is loaded. Raises FabricError."""
        if self._library.bpf_map__set_initial_value(self._map(".rodata"), values, len(values)):
            raise self._refused(f"its constants are not {len(values)} bytes long")

    def load(self, entries: Mapping[str, int]) -> None:
        """Size the maps and load everything into the kernel. Raises FabricError if it refuses."""
        for name, count in entries.items():
            if self._library.bpf_map__set_max_entries(self._map(name), count):
                raise self._refused(f"map {name} cannot have {count} entries")
        if self._library.bpf_object__load(self._object):
            raise self._refused("the kernel refused it")

    def map_descriptor(self, name: str) -> int:
        """A descriptor of a loaded map; the caller closes it."""
        return os.dup(self._library.bpf_map__fd(self._map(name)))

    def pin(self, program: str, path: Path) -> int:
        """Pin a loaded program at a bpffs path. Returns its id in the kernel."""
        handle = self._library.bpf_object__find_program_by_name(self._object, program.encode())
        if not handle:
            raise self._refused(f"there is no program {program}")
        if self._library.bpf_program__pin(handle, str(path).encode()):
            raise self._refused(f"cannot pin {program} at {path}")
        info = (c_uint32 * 2)()  # struct bpf_prog_info begins with type and id
        size = c_uint32(ctypes.sizeof(info))
        if self._library.bpf_obj_get_info_by_fd(self._library.bpf_program__fd(handle), info, byref(size)):
            raise self._refused(f"cannot read the id of {program}")
        return int(info[1])

    def pin_map(self, name: str, path: Path) -> None:
        """Pin a loaded map at a bpffs path."""
        if self._library.bpf_map__pin(self._map(name), str(path).encode()):
            raise self._refused(f"cannot pin map {name} at {path}")

    def close(self) -> None:
        """Close the object: pinned, mapped and attached parts stay in the kernel."""
        self._library.bpf_object__close(self._object)
        self._library.libbpf_set_print(None)

    def _map(self, name: str) -> int:
        found = self._library.bpf_object__find_map_by_name(self._object, name.encode())
        if not found:
            raise self._refused(f"there is no map {name}")
        return int(found)

    def _hear(self, level: int, text: bytes, arguments: int) -> int:
        if level == _WARNING:
            message = ctypes.create_string_buffer(_MESSAGE_BYTES)
            _vsnprintf(message, _MESSAGE_BYTES, text, arguments)
            self._messages += message.value.decode("utf-8", "replace").splitlines()
        return 0

    def _refused(self, what: str) -> FabricError:
        return FabricError("fabric", _ACTION, f"{what}: {self._reason()}")

    def _reason(self) -> str:
        messages = [line.removeprefix("libbpf: ").strip() for line in self._messages if line.strip()]
        # For a refused program libbpf prints the whole verifier log: the reason is before its closing statistics.
        reasons = [line for line, following in pairwise(messages) if following.startswith("processed ")]
        return (reasons or messages or ["no reason given"])[-1]


def pinned_map(path: Path) -> int:
    """A descriptor of a map that is pinned there; the caller closes it. Raises OSError, MissingCapability without
    libbpf."""
    descriptor = int(_library().bpf_obj_get(str(path).encode()))
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    return descriptor


def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY, use_errno=True)
    except OSError as error:
        raise MissingCapability(f"libbpf cannot be loaded: {error}", "apt-get install --reinstall libbpf1") from None
    for name, result, arguments in _SIGNATURES:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_vsnprintf = ctypes.CDLL(None).vsnprintf
_vsnprintf.argtypes = [c_void_p, c_size_t, c_char_p, c_void_p]
