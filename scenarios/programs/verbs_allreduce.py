"""A ring all-reduce over verbs: each rank writes straight into the memory of the rank after it.

A region holds the values, and behind them a place for each turn's chunk from the rank before, so that nothing is
overwritten before it is read. Every sum is checked: a wrong one ends the program.
"""

import os
from array import array

from mrc_testbed import verbs

ROUNDS, WEIGHTS = int(os.environ.get("ROUNDS", "30")), int(os.environ.get("WEIGHTS", "65536"))
SIZE = int(os.environ["MRC_WORLD_SIZE"])
PART = -(-WEIGHTS // SIZE)
TURNS = 2 * (SIZE - 1)


def all_reduce(job, values):
    """The sums over all ranks: N - 1 turns of adding, N - 1 turns of handing on."""
    for turn in range(TURNS):
        out, into = (job.rank - turn) % SIZE * PART, (job.rank - turn - 1) % SIZE * PART
        place = (SIZE + turn) * PART
        job.next.write(8 * out, 8 * PART, remote_offset=8 * place, immediate=turn)
        came = job.previous.receive()
        if (came.immediate, came.byte_len) != (turn, 8 * PART):
            raise SystemExit(f"turn {turn}: came {came}")
        if turn < SIZE - 1:
            values[into : into + PART] = array("d", map(float.__add__, values[into : into + PART], values[place:]))
        else:
            # What was written from here has arrived, so it may change.
            job.next.wait_writes()
            values[into : into + PART] = values[place : place + PART]
    if TURNS:
        job.next.wait_writes()


region = memoryview(bytearray(8 * PART * (SIZE + TURNS))).cast("d")
with verbs.join(region, to="ring") as job:
    for step in range(ROUNDS):
        region[:WEIGHTS] = array("d", ((job.rank + 1.0) * (index % 97 + step) for index in range(WEIGHTS)))
        all_reduce(job, region)
        ranks = SIZE * (SIZE + 1) / 2
        if wrong := [index for index in range(WEIGHTS) if region[index] != ranks * (index % 97 + step)]:
            raise SystemExit(f"step {step}: {len(wrong)} sums are wrong, the first at {wrong[0]}")
        print(f"step {step} done", flush=True)
