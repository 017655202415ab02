"""What a call of torch.distributed returns: a Work, to be waited for."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import torch
from torch._C._distributed_c10d import Work

_KEPT: Final = 8


class MrcWork(Work):  # type: ignore[misc]
    """An operation of a group. `wait` raises RuntimeError where it failed; PyTorch's own Work of a future would not."""

    def __init__(self) -> None:
        super().__init__()
        self._ended: Any = torch.futures.Future()
        # A future of PyTorch fails only by what a callback of another one raises.
        self._result = self._ended.then(_unwrapped)

    def finish(self, error: str | None, outputs: list[Any]) -> None:
        """It is over."""
        self._ended.set_result((error, outputs))

    def wait(self, timeout: Any = None) -> bool:
        """The timeout is that of the group."""
        error, _ = self._ended.wait()
        if error is not None:
            raise RuntimeError(error)
        return True

    def get_future(self) -> Any:
        """Its value: the tensors."""
        return self._result

    def is_completed(self) -> bool:
        return bool(self._ended.done())

    def is_success(self) -> bool:
        return self.is_completed() and self._ended.value()[0] is None

    def exception(self) -> Any:
        error = self._ended.value()[0] if self.is_completed() else None
        return None if error is None else RuntimeError(error)

    def result(self) -> list[Any]:
        self.wait()
        return list(self._ended.value()[1])


class Alive:
    """C++ that got a Work does not keep its Python part. So it is kept until it is over, and the last few longer: they
    are asked for right after."""

    def __init__(self) -> None:
        self._going_on: set[MrcWork] = set()
        self._over: deque[MrcWork] = deque(maxlen=_KEPT)

    def add(self, work: MrcWork) -> None:
        """It goes on."""
        self._going_on.add(work)

    def over(self, work: MrcWork) -> None:
        """It is over."""
        self._over.append(work)
        self._going_on.discard(work)


def _unwrapped(ended: Any) -> list[Any]:
    error, outputs = ended.value()
    if error is not None:
        raise RuntimeError(error)
    return list(outputs)
