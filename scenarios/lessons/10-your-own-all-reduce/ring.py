"""All-reduce as a ring. Yours: for now it is the star."""

import star


def all_reduce(numbers, rank, size, links):
    """The sum of `numbers` over all ranks, at every rank.

    links.send(rank, numbers)     numbers, an array, are on their way; it does not wait
    links.receive(rank, count)    waits for the next `count` numbers from that rank
    job.add(some, others)         the sums of two arrays of one length, after `import job`
    numbers[8:16]                 eight of them, as an array; `numbers[8:16] = other` writes them
    """
    return star.all_reduce(numbers, rank, size, links)
