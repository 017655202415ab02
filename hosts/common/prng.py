"""A small seeded generator: the same seed gives the same run, on every machine and Python version."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Prng:
    """xorshift32 (Marsaglia 2003). Good enough to shuffle paths and jitter timers; not for secrets."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        # A multiplicative hash first, so that seeds 1, 2, 3 do not start alike; the state must not be 0.
        self._state = (seed * 0x9E3779B1 ^ seed >> 16 ^ 0x5BF03635) & 0xFFFFFFFF or 1
        for _ in range(4):
            self.bits()

    def bits(self) -> int:
        """32 fresh bits."""
        x = self._state
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        self._state = x
        return x

    def below(self, n: int) -> int:
        """0 <= result < n, n < 2^32."""
        return self.bits() * n >> 32

    def jitter(self, value: int, percent: int) -> int:
        """`value` +- up to `percent` %."""
        return value * (100 - percent + self.below(2 * percent + 1)) // 100

    def shuffle(self, items: list[T]) -> None:
        """Fisher-Yates, in place; draws inline because it runs once per turn of the path rotation."""
        x = self._state
        for i in range(len(items) - 1, 0, -1):
            x ^= x << 13 & 0xFFFFFFFF
            x ^= x >> 17
            x ^= x << 5 & 0xFFFFFFFF
            j = x * (i + 1) >> 32
            items[i], items[j] = items[j], items[i]
        self._state = x
