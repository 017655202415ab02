"""How long single messages take, against what store-and-forward allows.

    sudo .venv/bin/python benchmarks/message_times.py [slow|standard] [REPEATS]

A message of 1 to 64 full packets is written after a pause, through one switch (within a T0 group) and through three
(across T1); its time is from the write until the receiver has all of it. The formula is `earliest_ns`: half a T, the
packets of the fullest plane one behind the other, and one packet's time for each further link. `slow` is 2 planes of
4 Mb/s with T = 60 ms, `standard` 4 planes of 25 Mb/s with T = 20 ms. The median of a size that fits into a window must
be within 5 % or half a packet of the formula, and no time may be under it. A single time also has the wake-ups of two
processes in it.
"""

from __future__ import annotations

import operator
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.fabric import capabilities
from mrc_testbed.testbed.fabric.fabric import Fabric
from mrc_testbed.testbed.fabric.sandbox import run_isolated
from mrc_testbed.testbed.rundir.recorder import Recorder
from mrc_testbed.testbed.runner.daemon import DaemonProcess
from mrc_testbed.testbed.runner.loop import RealTimeLoop
from mrc_testbed.testbed.runner.setup import configuration, connect_qps
from mrc_testbed.testbed.runner.team import Team
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.workloads.estimate import earliest_ns, links_between
from mrc_testbed.testbed.workloads.job import JobPlan, JsonOperation, QpSpec
from mrc_testbed.topos.plan import build_plan
from mrc_testbed.topos.shape import PAYLOAD_BYTES, WIRE_BYTES, Shape

FABRICS = {
    "slow": "planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 4mbit, rtt: 60ms",
    "standard": "planes: 4, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 25mbit, rtt: 20ms",
}
SCENARIO = """
name: message-times
fabric: {{{fabric}}}
workload:
  - train: {{steps: 1, compute: 0s, allreduce: 1MiB}}
"""
PACKETS = (1, 2, 3, 4, 8, 16, 32, 64)
SENDER = 0
RECEIVERS = {1: 1, 3: 2}
"""Number of switches on the way -> host."""
PAUSES_T = (0.5, 15)
"""Pause before a message, T: a short one, and one after which nothing remembers the last message."""
TOLERANCE = 0.05
TOLERANCE_PACKETS = 0.5
WINDOW_BDP = 1.5
"""Largest window of the endpoints, in BDP (UEC 1.0)."""
ALLOWED_EARLY_NS = 100_000
"""Two readings of the clock in two processes."""


@dataclass(frozen=True)
class Message:
    """What is written in one step."""

    size_bytes: int
    switches: int
    pause_t: float

    def waits_for_window(self, shape: Shape) -> bool:
        """Does it need more than a window of 1.5 BDP, and so an acknowledgement? Then the wire alone does not say."""
        return self.size_bytes / PAYLOAD_BYTES > WINDOW_BDP * shape.planes * shape.plane_bdp_packets


@dataclass(frozen=True)
class Timed:
    """A message, how long it took, and how long the formula says."""

    message: Message
    took_ns: float
    earliest_ns: float

    def fits(self, shape: Shape) -> bool:
        """Not faster than the wire, and within the tolerance if a window holds it."""
        packet_ns = WIRE_BYTES * 8e9 / shape.port_rate_bps
        late_ns = self.took_ns - self.earliest_ns
        allowed_ns = max(TOLERANCE * self.earliest_ns, TOLERANCE_PACKETS * packet_ns)
        return not self.is_early() and (late_ns <= allowed_ns or self.message.waits_for_window(shape))

    def is_early(self) -> bool:
        """Was it faster than the wire?"""
        return self.took_ns - self.earliest_ns < -ALLOWED_EARLY_NS


def medians(found: list[Timed]) -> list[Timed]:
    """Of each kind of message the one with the median time."""
    kinds = dict.fromkeys(one.message for one in found)
    took = operator.attrgetter("took_ns")
    sorted_by_kind = [sorted((one for one in found if one.message == kind), key=took) for kind in kinds]
    return [same[(len(same) - 1) // 2] for same in sorted_by_kind]


def messages(packets: tuple[int, ...] = PACKETS, repeats: int = 1) -> list[Message]:
    """All sizes, paths and pauses, and a message of two bytes."""
    sizes = (2, *(number * PAYLOAD_BYTES for number in packets))
    return [
        Message(size, switches, pause_t)
        for _ in range(repeats)
        for switches in RECEIVERS
        for size in sizes
        for pause_t in PAUSES_T
    ]


def job(wanted: list[Message], rtt_ns: int) -> JobPlan:
    """The sender writes one message a step; each receiver waits for its own."""
    largest = max(message.size_bytes for message in wanted)
    qps = {switches: QpSpec(f"q{switches}", SENDER, host, largest) for switches, host in RECEIVERS.items()}
    programs: dict[int, list[list[JsonOperation]]] = {host: [[]] for host in (SENDER, *RECEIVERS.values(), 3)}
    for step, message in enumerate(wanted):
        qp, size = qps[message.switches].id, message.size_bytes
        put = ["put", qp, step, 0, size, 0, size, 0]
        pause = ["compute", int(message.pause_t * rtt_ns)]
        programs[SENDER][0] += [pause, ["begin", step], put, ["drain", qp], ["end", step]]
        programs[RECEIVERS[message.switches]][0] += [["begin", step], ["wait", qp, step, 0], ["end", step]]
    return JobPlan(tuple(qps.values()), programs, tuple(programs))


def measure(fabric: Fabric, options: FabricOptions, text: str, wanted: list[Message]) -> Iterator[Timed]:
    """Write all messages, one after the other."""
    scenario, plan, loop = load_scenario_text(text), fabric.plan, RealTimeLoop()
    plan_job = job(wanted, plan.shape.rtt_ns)
    began: dict[int, int] = {}
    ended: dict[int, int] = {}
    done: set[str] = set()

    def on_event(host: str, event: dict[str, Any]) -> None:
        if event["event"] == "qp_error":
            raise SystemExit(f"{host}: {event}")
        if event["event"] == "program_done":
            done.add(host)
        if event["event"] == "step":
            times, moment = (began, "begin_ns") if host == plan.hosts[SENDER].name else (ended, "end_ns")
            times[event["step"]] = event[moment]

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "logs").mkdir()
        recorder = Recorder(Path(folder))
        names = [host.name for host in plan.hosts]
        daemons = {name: DaemonProcess(name, fabric, loop, recorder, on_event) for name in names}
        team = Team(daemons, loop)
        team.ask("configure", lambda name: configuration(name, scenario, plan, plan_job, options, []))
        connect_qps(team, plan, plan_job)
        team.ask("warm_up", lambda _: {"timeout_ns": 3 * 10**9})
        team.ask("load", lambda name: _load(plan.host_by_name[name].index, plan_job))
        start_ns = time.monotonic_ns() + 200_000_000
        team.ask("start", lambda _: {"at_ns": start_ns})
        if not loop.run_until(lambda: len(done) == len(names), time.monotonic_ns() + 300 * 10**9):
            raise SystemExit(f"only {sorted(done)} of {names} finished")
        team.stop()
        team.close()
        recorder.close()
    for step, message in enumerate(wanted):
        links = links_between(plan.shape, SENDER, RECEIVERS[message.switches])
        earliest = earliest_ns(plan.shape, (message.size_bytes,), links)
        yield Timed(message, ended[step] - began[step], earliest)


def _load(host: int, plan_job: JobPlan) -> dict[str, Any]:
    return {"rank": plan_job.rank_of(host), "data_seed": 1, "program": plan_job.programs[host]}


def compare(name: str, repeats: int) -> int:
    """Measure and print the table. Returns 0 when every message fits."""
    text = SCENARIO.format(fabric=FABRICS[name])
    shape = load_scenario_text(text).shape()
    options = capabilities.choose(capabilities.probe(), shape)
    fabric = Fabric.build(build_plan(shape), options)
    found = list(measure(fabric, options, text, messages(repeats=repeats)))
    outside = 0
    print(f"{FABRICS[name]}; switch ports: {options.switch_ports}; time of messages / formula, {repeats} each")
    print(f"{'size':>12}{'switches':>10}{'pause, T':>10}{'formula, ms':>13}{'median, ms':>12}{'least':>8}{'most':>8}")
    for median in medians(found):
        message, formula = median.message, median.earliest_ns
        same = [one for one in found if one.message == message]
        times = [one.took_ns for one in same]
        fits = median.fits(shape) and not any(one.is_early() for one in same)
        outside += not fits
        whole = message.size_bytes // PAYLOAD_BYTES
        size = f"{whole} packets" if whole else f"{message.size_bytes} bytes"
        print(
            f"{size:>12}{message.switches:>10}{message.pause_t:>10g}{formula / 1e6:>13.2f}"
            f"{statistics.median(times) / 1e6:>12.2f}{min(times) / formula:>8.3f}{max(times) / formula:>8.3f}"
            + ("" if fits else "   outside")
            + ("   over a window" if message.waits_for_window(shape) else "")
        )
    print(f"{outside} kinds of messages are not as the wire has them   (wanted: 0)")
    return 1 if outside else 0


def main() -> int:
    """In namespaces of its own."""
    name = sys.argv[1] if len(sys.argv) > 1 else "slow"
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    return run_isolated(lambda: compare(name, repeats))


if __name__ == "__main__":
    sys.exit(main())
