"""The scenario of a soak: the faults of chaos/mixed-hour for as long as is asked for, and a quarter of its packets.

An hour is there for what grows slowly. A machine that is late for a moment in it should not cost the verdict: hence the
long T and the few packets.
"""

from __future__ import annotations

STEP_S = 1.6
"""About the time of a step, faults and all."""
LONGEST_STORM_S = 3600
"""Of one chaos: the language has at most 1000 events of a kind in each."""
_HEAD = """
name: soak
about: Mixed chaos for {minutes:g} min.
seed: {seed}
fabric: {{planes: 4, t0_groups: 2, t1: 4, hosts_per_t0: 4, port_rate: 25mbit, rtt: 40ms}}
endpoint: {{icrc: true}}
workload:
  - train: {{hosts: [h0, h4, h1, h5], steps: {steps}, compute: 800ms, allreduce: 4MiB}}
time_limit: {limit_s}s
expect:
  - qp_errors == 0
  - bytes_wrong == 0
  - data_on_bad_ev == 0
  - unrestored_evs == 0
  - steps_done == {steps}
faults:
"""
_STORM = """
  - at: {at_s}s
    for: {for_s}s
    name: storm-{number}
    chaos:
      link-flap: {{times: 15/min, period: 400ms, count: 1, jitter: 50%}}
      link-down: {{times: 2/min, for: 3s}}
      switch-reboot: {{times: 2/min, boot: 2s}}
      switch-silent: {{times: 1/min, for: 2s}}
      transceiver-flap: {{times: 1/min, period: 600ms, count: 4, jitter: 30%}}
      port-flap: {{times: 2/min, period: 1s, count: 1, jitter: 50%}}
      link-loss: {{times: 2/min, for: 2s, loss: 5%}}
      one-way: {{times: 1/min, for: 1s}}
      plane-loss: {{times: 1/min, for: 2s, loss: 1%}}
      corrupt: {{times: 1/min, for: 2s, share: 1%}}
      link-rate: {{times: 1/min, for: 2s, rate: 10mbit}}
"""


def soak_scenario(minutes: float, seed: int) -> str:
    """The text: chaos all the time but for five seconds at either end."""
    seconds = round(minutes * 60)
    head = _HEAD.format(minutes=minutes, seed=seed, steps=round(seconds / STEP_S), limit_s=3 * seconds + 120)
    storms = [
        _STORM.format(number=number, at_s=5 + at_s, for_s=min(LONGEST_STORM_S, seconds - 10 - at_s))
        for number, at_s in enumerate(range(0, seconds - 10, LONGEST_STORM_S), 1)
    ]
    return "".join([head, *storms])
