"""What is read when the workload is over."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.topos.shape import WIRE_BYTES
from tests.unit.runner.measuring import Bench, FakeWatch, S, cut, loss


def document(bench: Bench, name: str) -> Any:
    return json.loads((bench.folder / name).read_text())


def test_the_final_figures_are_whole(bench: Bench) -> None:
    bench.fabric.dropped = 5
    bench.finish(1.5)
    rate = 25_000_000 // 8
    for tenths in range(15):
        bench.loop.at(
            bench.start_ns + tenths * S // 10,
            lambda n=tenths: setattr(bench.fabric, "sent_bytes", n * rate // 9),  # type: ignore[misc]
        )
    bench.run()
    bench.fabric.dropped = 12
    bench.measurement.final_figures(bench.team)
    counters = document(bench, "counters.json")
    assert counters["hosts"]["h1"] == {
        "counters": {"sent": 2},
        "paths": {},
        "qps": {},
        "lateness": {"p99_ns": 20, "max_ns": 200},
    }
    assert counters["queues"] == bench.fabric.queues()
    assert counters["socket_losses"] == {"h0": 4}
    assert counters["sids"] == {"p0-t0-0": {"fcbb:bb00:1000::/48": {"packets": 6, "bytes": 700}}}
    assert counters["no_sid"] == {"p0-t0-0": 2}
    port = counters["ports"]["h0"]["port0"]
    assert (port["rx_packets"], port["tx_packets"], port["queue_drops_high"], port["queue_drops_data"]) == (2, 5, 1, 2)
    assert port["in_data"] == bench.fabric.port_counts()["h0", "port0"].in_data
    assert not any(name.startswith("out_") for name in port), "a NIC has no program at egress"
    fidelity = document(bench, "fidelity.json")
    assert fidelity.pop("shaped_rate_error") == pytest.approx(1 / 9, abs=0.01)
    assert fidelity == {
        "measured_s": 1.0,
        "cpu_pressure_some": None,
        "run_delay": {},
        "softnet_drops": 0,
        "wall_clock_step_ns": 0,
        "udp_rcvbuf_errors": 7,
        "lateness_p99_ns": {"h0": 10, "h1": 20},
        "lateness_max_ns": {"h0": 100, "h1": 200},
        "unavailable": {"cpu_pressure_some": "this kernel does not count it (PSI)"},
    }


def test_the_endpoints_are_quiet_for_three_round_trips_before_they_are_read(bench: Bench) -> None:
    bench.finish(1.5)
    bench.run()
    bench.clock.now_ns = at_ns = 5 * S
    bench.measurement.final_figures(bench.team)
    assert bench.fake_team.asked == ["quiet", "stats"]
    assert bench.clock.now_ns - at_ns == max(100_000_000, 3 * bench.rtt_ns)


def test_the_books_are_read_when_no_port_counts_any_more(bench: Bench) -> None:
    bench.finish(1.5)
    bench.run()
    at_ns = bench.clock.now_ns
    for tenths in range(1, 11):
        bench.loop.at(at_ns + tenths * S // 20, lambda n=tenths: setattr(bench.fabric, "sent_bytes", n))  # type: ignore[misc]
    bench.measurement.final_figures(bench.team)
    assert 0.6 <= (bench.clock.now_ns - at_ns) / S <= 0.75


def test_queues_that_never_run_empty_are_not_waited_for_without_end(bench: Bench) -> None:
    bench.finish(1.5)
    bench.run()
    at_ns = bench.clock.now_ns
    bench.loop.every(S // 100, lambda: setattr(bench.fabric, "sent_bytes", bench.fabric.sent_bytes + 1), at_ns)
    bench.measurement.final_figures(bench.team)
    assert 20 <= (bench.clock.now_ns - at_ns) / S <= 20.2


@pytest.mark.parametrize(
    "bench", ["faults: [{at: 1s, link-rate: p0-t0-0:p0-t1-0, for: 1s, rate: 100kbit}]\n"], indirect=True
)
def test_a_port_that_was_slow_is_given_the_time_of_its_last_packets(bench: Bench) -> None:
    bench.finish(2.5)
    bench.run()
    at_ns = bench.clock.now_ns
    bench.measurement.final_figures(bench.team)
    assert (bench.clock.now_ns - at_ns) / S == pytest.approx(16 * WIRE_BYTES * 8 / 100_000)


def test_with_plain_shapers_the_kernels_own_counts_are_kept(bench: Bench) -> None:
    bench.fabric.options = FabricOptions("dummy", "netem", "plain shaper")
    bench.finish(1.5)
    bench.run()
    bench.measurement.final_figures(bench.team)
    counters = document(bench, "counters.json")
    assert "ports" not in counters
    assert not (bench.folder / "ports.csv").exists()
    assert counters["frames"]["h0"] == {"port0": {"rx_packets": 2, "multicast": 9}}
    assert (counters["icmp_in"], counters["icmp_out"]) == ({"h0": 7}, {"h0": 8})
    assert counters["socket_losses"] == {"h0": 4}


@pytest.mark.parametrize(
    ("port", "at_s", "counted", "blamed"),
    [("up0", 2, True, 0), ("up1", 2, True, 2), ("up0", -1, True, 2), ("up0", 2, False, 2)],
    ids=["cut", "sound", "before the machine was watched", "Linux 6.10"],
)
@cut
def test_drops_at_a_port_that_a_fault_took_down_are_none_of_the_machines(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, port: str, at_s: int, counted: bool, blamed: int
) -> None:
    """Where the kernel counts them with those of its input queue, and as many as there were meanwhile."""
    figures = {**FakeWatch().figures(), "softnet_drops": 2}
    monkeypatch.setattr(FakeWatch, "figures", lambda _: figures.copy())
    monkeypatch.setattr(FakeWatch, "softnet_has_dead_ports", counted)
    others = bench.fabric.sample_ports()

    def rows() -> list[tuple[Any, ...]]:
        drops = 2 if bench.clock.now_ns >= bench.start_ns + at_s * S else 0
        return [*others, ("p0-t0-0", port, 0, 0, drops, 0, 0, 0)]

    monkeypatch.setattr(bench.fabric, "sample_ports", rows)
    bench.finish(5)
    bench.run()
    bench.measurement.final_figures(bench.team)
    assert document(bench, "fidelity.json")["softnet_drops"] == blamed


def test_a_short_run_says_why_a_figure_is_missing(bench: Bench) -> None:
    bench.finish(0.5)
    bench.run()
    bench.measurement.final_figures(bench.team)
    fidelity = document(bench, "fidelity.json")
    assert fidelity["shaped_rate_error"] is None
    assert fidelity["unavailable"]["shaped_rate_error"] == "the run was shorter than one window of a second"


@loss
def test_plain_shapers_have_no_counts_of_ports(bench: Bench) -> None:
    bench.fabric.options = replace(bench.fabric.options, switch_ports="plain shaper")
    bench.finish(5)
    bench.measurement.watch_machine(FakeWatch())
    bench.run()
    bench.measurement.final_figures(bench.team)
    assert "ports" not in document(bench, "counters.json")
