"""How many bytes a QP may have under way. One file an algorithm; `EndpointConfig.congestion_control` names it.

A new algorithm is one file with a class like those here, and one line in `ALGORITHMS`, or a plugin.
"""

from __future__ import annotations

from collections.abc import Callable

from mrc_testbed.hosts.mrc.cc.base import CongestionControl
from mrc_testbed.hosts.mrc.cc.fixed import FixedWindow
from mrc_testbed.hosts.mrc.cc.nscc import Nscc
from mrc_testbed.hosts.mrc.timing import Timing

ALGORITHMS: dict[str, Callable[[Timing], CongestionControl]] = {"fixed": FixedWindow, "nscc": Nscc}
"""By the name the configuration uses."""

__all__ = ["ALGORITHMS", "CongestionControl", "FixedWindow", "Nscc"]
