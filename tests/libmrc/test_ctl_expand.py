"""EV expansion, against values worked out by hand and an implementation on strings of bits."""

from __future__ import annotations

import errno
import random
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.libmrc.ctl_compiled import HERE, SANITIZERS, SOURCES, compiled, run

EV_BYTES = 32
EV_BITS = 32


@dataclass(frozen=True)
class Field:
    """An EV field."""

    width: int
    init: int = 0
    low: int = 0
    high: int = 0
    mask: int = 0


@dataclass(frozen=True)
class Case:
    """What is expanded."""

    widths: tuple[int, ...]
    fields: tuple[Field, ...]
    value: int

    def line(self) -> str:
        """For the driver."""
        fields = [number for f in self.fields for number in (f.width, f.init, f.low, f.high, f.mask)]
        return " ".join(map(str, (len(self.widths), *self.widths, len(self.fields), *fields, self.value)))


OWN = Case((4, 4, 8, 16), (Field(4), Field(4, mask=0xF), Field(8, mask=0xFF), Field(16)), 0x205)


def expected(case: Case) -> bytes:
    """The rule, on characters: no arithmetic in common with the C."""
    taken = sum(bin(field.mask).count("1") for field in case.fields)
    source = iter(f"{case.value:0{taken}b}" if taken else "")
    text = ""
    for width, field in zip(case.widths, case.fields, strict=False):
        start, mask = f"{field.init:0{width}b}", f"{field.mask:0{width}b}"
        text += "".join(next(source) if taken_here == "1" else bit for bit, taken_here in zip(start, mask, strict=True))
    return int(text.ljust(EV_BYTES * 8, "0"), 2).to_bytes(EV_BYTES, "big")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("expand")
    return compiled(folder / "expand", [HERE / "ctl_expand_driver.c", SOURCES / "ctl_expand.c"], *SANITIZERS)


def expand(driver: Path, cases: list[Case]) -> list[tuple[int, bytes]]:
    """The driver's answers."""
    result = run(driver, given="\n".join(case.line() for case in cases))
    assert result.returncode == 0, result.stderr
    answers = [line.split() for line in result.stdout.splitlines()]
    assert len(answers) == len(cases)
    return [(int(error), bytes.fromhex(bits)) for error, bits in answers]


def test_values_worked_out_by_hand(driver: Path) -> None:
    by_hand = {
        # Plane 2 and uplink 5 are in bits 27:24 and 23:16.
        OWN: "02050000",
        # One field, all of it from the value.
        Case((32,), (Field(32, mask=0xFFFFFFFF),), 0x87654321): "87654321",
        # Bits 7 and 0 of the field are the value's 1 and 0; the bits between are the initial value.
        Case((8,), (Field(8, init=0b0101_0101, mask=0b1000_0001),), 0b10): "d4",
        # 3 bits in a format field of 8 have five zeros in front, and the format's last field stays empty.
        Case((8, 8, 8), (Field(3, init=0b111), Field(8, init=0xAB)), 0): "07ab00",
        # The first field has the value's most significant bits: 0b110 | 0b01.
        Case((4, 4), (Field(4, mask=0b0111), Field(4, mask=0b0101)), 0b11001): "61",
        # A locator of 32 bits and four uSIDs: 96 bits, as SRv6 has it.
        Case(
            (32, 16, 16), (Field(32, init=0xFCBBBB00), Field(16, mask=0xF), Field(16, init=0xE000, mask=3)), 0b101110
        ): ("fcbbbb00000be002"),
    }
    for case, (error, bits) in zip(by_hand, expand(driver, list(by_hand)), strict=True):
        assert error == 0
        assert bits.hex() == by_hand[case].ljust(EV_BYTES * 2, "0")
        assert bits == expected(case)


def random_case(dice: random.Random) -> Case:
    """One that is fit to be expanded."""
    widths = tuple(dice.randint(1, 40) for _ in range(dice.randint(1, 6)))
    fields, left = [], EV_BITS
    for room in widths[: dice.randint(1, len(widths))]:
        width = dice.randint(1, min(room, 32))
        mask = dice.getrandbits(width)
        while bin(mask).count("1") > left:
            mask &= mask - 1
        bits = bin(mask).count("1")
        left -= bits
        low, high = sorted(dice.randrange(1 << bits) for _ in range(2))
        fields.append(Field(width, dice.getrandbits(width), low, high, mask))
    return Case(widths, tuple(fields), dice.randrange(1 << (EV_BITS - left)))


def test_random_fields_as_the_other_implementation(driver: Path) -> None:
    dice = random.Random(20)
    cases = [random_case(dice) for _ in range(3000)]
    for case, answer in zip(cases, expand(driver, cases), strict=True):
        assert answer == (0, expected(case)), case


def test_refusals(driver: Path) -> None:
    def own_with(index: int, **changes: int) -> Case:
        fields = [replace(field, **changes) if at == index else field for at, field in enumerate(OWN.fields)]
        return replace(OWN, fields=tuple(fields))

    refused = {
        replace(OWN, fields=()): errno.EINVAL,
        replace(OWN, fields=(*OWN.fields, Field(1))): errno.E2BIG,
        own_with(0, width=5): errno.E2BIG,
        replace(OWN, widths=(40,), fields=(Field(33),), value=0): errno.E2BIG,
        own_with(0, width=0): errno.EINVAL,
        own_with(1, init=0x10): errno.EINVAL,
        own_with(1, mask=0x10): errno.EINVAL,
        own_with(1, high=0x10): errno.EINVAL,
        own_with(1, mask=0b11, high=0b100): errno.EINVAL,
        own_with(0, high=1): errno.EINVAL,
        own_with(1, low=3, high=2): errno.EINVAL,
        # More bits than an EV has, and a value with more bits than the masks.
        Case((32, 32), (Field(32, mask=0xFFFFFFFF), Field(32, mask=1)), 0): errno.E2BIG,
        replace(OWN, value=0x1000): errno.EINVAL,
        # A format that no EV can hold.
        Case((255, 255), (Field(8),), 0): errno.E2BIG,
    }
    for case, (error, bits) in zip(refused, expand(driver, list(refused)), strict=True):
        assert error == refused[case], case
        assert bits == bytes(EV_BYTES)


def test_limits_are_taken(driver: Path) -> None:
    taken = [
        Case((1,) * 32, tuple(Field(1, mask=1, high=1) for _ in range(32)), 0xFFFFFFFF),
        Case((255, 1), (Field(32, init=0xFFFFFFFF), Field(1, init=1)), 0),
        Case((4,), (Field(4, init=0xF, mask=0xF, low=0xF, high=0xF),), 0),
    ]
    for case, answer in zip(taken, expand(driver, taken), strict=True):
        assert answer == (0, expected(case))
