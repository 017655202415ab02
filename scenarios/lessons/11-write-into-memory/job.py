"""The job around a handover: four ranks in a ring, each writes a block into the memory of the next. It stays."""

import importlib
import os
import sys
import time

from mrc_testbed import verbs

STEPS, SIZE = int(os.environ["STEPS"]), int(os.environ["SIZE"])
OUT, IN = 0, SIZE


def block(rank, step):
    """What a rank gives in a step. No byte is what it was in the step before."""
    return bytes((index * 7 + index // 251 + rank * 31 + step * 11) % 256 for index in range(256)) * (SIZE // 256)


def main():
    """Give, take, compare every byte; then all go on together."""
    handover = importlib.import_module(sys.argv[1])
    memory = memoryview(bytearray(2 * SIZE))
    with verbs.join(memory, to="ring") as job:
        before = (job.rank - 1) % job.size
        for step in range(STEPS):
            memory[OUT : OUT + SIZE] = block(job.rank, step)
            right = block(before, step)
            job.barrier()
            print("begin", flush=True)
            handover.give(job.next, OUT, SIZE, IN, step)
            handover.take(job.previous, memory[IN : IN + SIZE], right[-1], step)
            found = bytes(memory[IN : IN + SIZE])
            print(f"step {step} done", flush=True)
            if wrong := sum(map(int.__ne__, found, right)):
                print(
                    f"rank {job.rank}, step {step}: {wrong} of {SIZE} bytes are not those of rank {before}", flush=True
                )
                time.sleep(0.5)
                late = sum(map(int.__ne__, memory[IN : IN + SIZE], right))
                print(f"half a second later {late} are not", flush=True)
                sys.exit(1)
            job.next.wait_writes()
            job.barrier()


if __name__ == "__main__":
    main()
