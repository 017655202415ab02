"""How a block changes hands: the writer adds an immediate, whose completion comes when every byte is there."""


def give(link, offset, size, remote_offset, step):
    """Write `size` bytes of our memory, from `offset` on, into that of the next rank. It does not wait."""
    link.write(offset, size, remote_offset, immediate=step)


def take(link, memory, last, step):
    """Return when the whole block of the rank before is in our `memory`, which ends with the byte `last`."""
    assert link.receive().immediate == step
