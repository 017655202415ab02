"""A judge as small as can be, which tests of the campaign itself have mutated."""

LIMIT = 5


def fits(value: int) -> bool:
    """At most the limit."""
    return value <= LIMIT


def count_down(rounds: int) -> int:
    """Ends at 0; with `+=` never."""
    while rounds > 0:
        rounds -= 1
    return rounds


def same(value: int) -> int:
    """No test can tell the largest from the smallest here."""
    return max(value, value)


def untouched(value: int) -> int:
    """Nobody tests it."""
    return value + 1
