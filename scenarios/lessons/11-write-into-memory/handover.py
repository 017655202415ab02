"""How a block changes hands. Yours: for now the receiver looks at the last byte."""

import time


def give(link, offset, size, remote_offset, step):
    """Write `size` bytes of our memory, from `offset` on, into that of the next rank. It does not wait.

    link.write(offset, size, remote_offset)                     the bytes alone
    link.write(offset, size, remote_offset, immediate=number)   and the next rank gets a completion with the number
    """
    link.write(offset, size, remote_offset)


def take(link, memory, last, step):
    """Return when the whole block of the rank before is in our `memory`, which ends with the byte `last`.

    link.receive()    waits for the next completion of a write with an immediate: .immediate, .byte_len
    """
    while memory[-1] != last:
        time.sleep(0.0005)
