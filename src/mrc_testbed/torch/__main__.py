"""`python -m mrc_testbed.torch train.py ...`: run a job as `python train.py ...` would, its process groups over MRC."""

from __future__ import annotations

import runpy
import sys
from functools import wraps
from pathlib import Path
from typing import Any

import torch.distributed

from mrc_testbed.torch import NAME


def main(words: list[str]) -> None:
    """The script takes this program's place: its arguments, its folder on the path, and `__main__`."""
    if not words:
        sys.exit("usage: python -m mrc_testbed.torch SCRIPT [ARGUMENT ...]")
    for name in ("init_process_group", "new_group"):
        _take_over(name)
    sys.argv = words
    sys.path[0] = str(Path(words[0]).resolve().parent)
    runpy.run_path(words[0], run_name="__main__")


def _take_over(name: str) -> None:
    """Calls of a function of torch.distributed name our backend, whatever they named."""
    original = getattr(torch.distributed, name)

    @wraps(original)
    def with_ours(*arguments: Any, **named: Any) -> Any:
        if name == "init_process_group" and arguments:
            arguments = arguments[1:]
        return original(*arguments, **{**named, "backend": NAME})

    setattr(torch.distributed, name, with_ours)


if __name__ == "__main__":
    main(sys.argv[1:])
