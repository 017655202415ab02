"""The command `warm_up`: has everything answer before a program begins."""

from __future__ import annotations

from typing import Any

from mrc_testbed.hosts.common.figures import PathReport
from mrc_testbed.hosts.control import CommandError, Fields
from mrc_testbed.hosts.network import Network
from mrc_testbed.hosts.rounds import ROUNDS, round_period_ns


class WarmUp:
    """A `warm_up` that waits for its answer. `broken`: paths that need not answer, as `silent` names them; `round_ns`:
    what the ports need for a probe on every path, and its answer; `rounds`: of probes on every path; `last_ns`: how
    long the last of them is waited for, if not until another would begin."""

    def __init__(
        self,
        request_id: Any,
        until_ns: int,
        broken: Fields,
        network: Network,
        now_ns: int,
        round_ns: int = 0,
        rounds: int = ROUNDS,
        last_ns: int | None = None,
    ) -> None:
        self.request_id = request_id
        self._until_ns = until_ns
        self._broken = _broken(broken)
        self._network = network
        self._period_ns = round_period_ns(network.rtt_ns, network.swift, round_ns)
        self._probe_ns = now_ns
        self._rounds = rounds
        self._last_ns = self._period_ns if last_ns is None else last_ns

    @property
    def next_ns(self) -> int:
        """When to call `advance` at the latest."""
        return min(self._probe_ns, self._until_ns)

    def advance(self, now_ns: int, names: dict[int, str]) -> Fields | None:
        """Send what probes are due. Returns the fields of the answer when all have answered, or the time is over.

        `names`: QP number to name.
        """
        network = self._network
        reports = {name: network.endpoint.path_report(peer) for peer, name in network.peers.items()}
        complete = not self._waiting(reports) and self._rounds <= 0 and now_ns >= self._probe_ns
        if complete or now_ns >= self._until_ns:
            return _answer(reports, names)
        if now_ns >= self._probe_ns:
            self._rounds -= 1
            self._probe_ns = now_ns + (self._last_ns if self._rounds == 0 else self._period_ns)
            for peer in network.peers:
                network.endpoint.probe_paths(peer, now_ns)
        return None

    def _waiting(self, reports: dict[str, PathReport]) -> bool:
        return any(
            report.silent_qps or any((name, *path) not in self._broken for path in report.silent)
            for name, report in reports.items()
        )


def _answer(reports: dict[str, PathReport], names: dict[int, str]) -> Fields:
    return {
        "rtt_ns": {name: report.rtt_ns for name, report in reports.items() if report.rtt_ns is not None},
        "silent": {name: report.silent for name, report in reports.items() if report.silent},
        "silent_qps": [names[qpn] for report in reports.values() for qpn in report.silent_qps],
    }


def _broken(table: Fields) -> set[tuple[str, int, int]]:
    """Raises CommandError."""
    try:
        return {(peer, int(plane), int(uplink)) for peer, paths in table.items() for plane, uplink in paths}
    except (TypeError, ValueError) as error:
        raise CommandError(f"broken must be {{peer: [[plane, uplink], ...]}}: {error}") from None
