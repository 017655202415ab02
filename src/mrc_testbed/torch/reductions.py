"""How the tensors of all ranks become one. The order of ranks decides: each rank gets the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce as fold
from typing import Any

import torch
from torch.distributed import ReduceOp

Tensor = Any


def reduction(operation: Any) -> Callable[[Sequence[Tensor]], Tensor]:
    """Of a ReduceOp. Raises ValueError for one that there is not."""
    if operation == ReduceOp.AVG:
        return _average
    for name, function in _FUNCTIONS.items():
        if operation == getattr(ReduceOp, name):
            return lambda tensors: fold(function, tensors)
    raise ValueError(f"backend mrc cannot reduce by {operation}")


def _average(tensors: Sequence[Tensor]) -> Tensor:
    """Of integers, rounded towards zero."""
    total = fold(torch.add, tensors)
    if total.is_floating_point() or total.is_complex():
        return total / len(tensors)
    return torch.div(total, len(tensors), rounding_mode="trunc")


_FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "SUM": torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}
