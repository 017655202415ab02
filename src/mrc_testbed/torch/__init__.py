"""PyTorch's `torch.distributed` over the verbs of this host: backend "mrc".

Without a line of a job changed, whatever backend it names:

    python3 -m mrc_testbed.torch train.py

Or name it in the job, `import mrc_testbed.torch` and `torch.distributed.init_process_group("mrc")`. Tensors are on the
CPU. All collectives of gloo are there, but for monitored_barrier and receiving from any rank.
"""

from __future__ import annotations

import torch.distributed

from mrc_testbed.torch.group import MrcGroup

NAME = "mrc"


def register() -> None:
    """Make the backend known; done by the import, and once."""
    backend = torch.distributed.Backend
    if hasattr(backend, NAME.upper()):
        return
    try:
        backend.register_backend(NAME, MrcGroup, devices=["cpu"])
    except TypeError:
        # PyTorch 1 knows no devices.
        backend.register_backend(NAME, MrcGroup)


register()

__all__ = ["NAME", "MrcGroup", "register"]
