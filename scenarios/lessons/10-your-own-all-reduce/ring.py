"""All-reduce as a ring. Yours: for now it is the star."""

from job import add


def all_reduce(numbers, rank, size, links):
    """The sum of `numbers` over all ranks, at every rank.

    links.send(rank, numbers)     numbers, an array, are on their way; it does not wait
    links.receive(rank, count)    waits for the next `count` numbers from that rank
    add(some, others)             the sums of two arrays of one length
    numbers[8:16]                 eight of them, as an array; `numbers[8:16] = other` writes them
    """
    if rank > 0:
        links.send(0, numbers)
        return links.receive(0, len(numbers))
    for other in range(1, size):
        numbers = add(numbers, links.receive(other, len(numbers)))
    for other in range(1, size):
        links.send(other, numbers)
    return numbers
