"""A small transformer, trained by PyTorch's DDP over gloo: twice the same, first in peace and then through faults.

Nothing here knows what carries the packets. Whatever breaks, the weights must end the same, bit for bit.
"""

import os
import sys
import time
from hashlib import sha256

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, SECOND_AT_S = int(os.environ.get("STEPS", "12")), float(os.environ.get("SECOND_AT", "25"))
WORDS, WIDTH, LENGTH, BATCH = 64, 64, 32, 4
BEGAN = time.monotonic()


class Model(nn.Module):
    """Guesses the next word; 0.24 million weights."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.zeros(LENGTH, WIDTH))
        block = nn.TransformerEncoderLayer(WIDTH, 4, 7 * WIDTH, dropout=0.0, batch_first=True)
        self.blocks, self.out = nn.TransformerEncoder(block, 3), nn.Linear(WIDTH, WORDS)
        self.register_buffer("mask", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))

    def forward(self, text):
        return self.out(self.blocks(self.words(text) + self.places, self.mask))


def batch(step, rank):
    """Sentences that count up or down by some number: what comes next can be learnt."""
    torch.manual_seed(1000 * step + rank)
    first, by = torch.randint(WORDS, (BATCH, 1)), torch.randint(-3, 4, (BATCH, 1))
    return (first + by * torch.arange(LENGTH + 1)) % WORDS


def train(begin):
    """The same training each time: a step to warm up and `STEPS` more, from the same weights. Returns the hash of the
    weights."""
    torch.manual_seed(1)
    rank, model = dist.get_rank(), DistributedDataParallel(Model())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(STEPS + 1):
        text = batch(step, rank)
        guess = model(text[:, :-1])
        loss = nn.functional.cross_entropy(guess.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        # DDP sends all weights around before the first step, and settles its buckets in it.
        print(f"step {begin + step - 1} done, loss={loss.item():.4f}" if step else "begin", flush=True)
    return sha256(b"".join(each.detach().numpy().tobytes() for each in model.parameters())).hexdigest()[:16]


torch.set_num_threads(1)
dist.init_process_group("gloo")
in_peace = train(0)
time.sleep(max(0.0, SECOND_AT_S - (time.monotonic() - BEGAN)))
in_faults = train(STEPS)
print(f"weights {in_peace} and {in_faults}", flush=True)
dist.barrier()
sys.exit(f"the weights differ: {in_peace} and {in_faults}" if in_peace != in_faults else 0)
