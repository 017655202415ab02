"""A congestion control as a plugin: a fixed share of the ports' rate, whatever the network says.

A window of rate x smoothed round trip makes the rate, whatever queues there are. See hosts/mrc/cc/base.py.
"""

from dataclasses import dataclass


class FixedRate:
    """One QP's window; `timing` is what has been measured towards its peer."""

    @dataclass(frozen=True)
    class Keys:
        share: float = 0.5

        def __post_init__(self):
            if not 0 < self.share <= 1:
                raise ValueError("share must be more than 0 and at most 1")

    def __init__(self, timing, keys):
        self.timing, self.share = timing, keys.share
        self.begin()

    def begin(self):
        timing = self.timing
        idle_ns = timing.t_ns + timing.forwarding_ns
        rtt_ns = timing.smoothed_rtt_ns or idle_ns
        wanted = self.share * timing.bdp_bytes * rtt_ns / idle_ns
        self.window = max(int(wanted), timing.packet_bytes)

    def on_sack(self, acked, rtt_ns, ecn, under_way, now_ns):
        self.begin()

    def on_loss(self, *_):
        pass

    on_trim = on_penalty = on_loss


PLUGIN = {"congestion_control": {"fixed-rate": FixedRate}}
