"""Ways in which a file can be wrong."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Damage = Callable[[Random, bytes], bytes]
_NUMBERS = (b"-1", b"0", b"1e400", b"NaN", b"99999999999999999999999999", b'"x"', b"null", b"[]", b"{}", b"true")


def cut_short(dice: Random, data: bytes) -> bytes:
    """As by a full disk."""
    return data[: dice.randrange(len(data) + 1)]


def some_bits(dice: Random, data: bytes) -> bytes:
    """Up to 20 bits flip."""
    found = bytearray(data)
    for _ in range(dice.randint(1, 20) if data else 0):
        found[dice.randrange(len(found))] ^= 1 << dice.randrange(8)
    return bytes(found)


def garbage(dice: Random, data: bytes) -> bytes:
    """Random bytes somewhere."""
    at = dice.randrange(len(data) + 1)
    return data[:at] + dice.randbytes(dice.randint(1, 200)) + data[at:]


def other_number(dice: Random, data: bytes) -> bytes:
    """One digit, or the text between two commas, becomes something else."""
    marks = [at for at, byte in enumerate(data) if byte in b"0123456789"][:20_000]
    if not marks:
        return garbage(dice, data)
    begin = end = dice.choice(marks)
    while end < len(data) and data[end : end + 1].isdigit():
        end += 1
    return data[:begin] + dice.choice(_NUMBERS) + data[end:]


def lines_gone(dice: Random, data: bytes) -> bytes:
    """Some lines are missing, twice there, or in another order."""
    lines = data.splitlines(keepends=True)
    kept = [line for line in lines if dice.random() < 0.9]
    kept += dice.sample(lines, min(3, len(lines)))
    if dice.random() < 0.5:
        dice.shuffle(kept)
    return b"".join(kept)


def nothing(dice: Random, data: bytes) -> bytes:
    """Empty."""
    return b""


def something_else(dice: Random, data: bytes) -> bytes:
    """Of another kind."""
    return dice.choice([b"[]", b"{}", b"null", b"\xff\xfe\x00", b"%PDF-1.4", b"a,b\n1,2\n", b'"' * 3000, b"\n" * 3000])


DAMAGES: tuple[Damage, ...] = (cut_short, some_bits, garbage, other_number, lines_gone, nothing, something_else)
