"""A congestion control as a plugin: a fixed share of the ports' rate, whatever the network says.

A window of rate x round trip makes the rate. The round trip is the smoothed one, queues included, so that a queue does
not slow the sender down. The Protocol is `CongestionControl` in hosts/core/cc/base.py.
"""

SHARE = 0.5


class FixedRate:
    """One QP's window; `timing` is what has been measured towards its peer."""

    def __init__(self, timing):
        self.timing = timing
        self.begin()

    def begin(self):
        timing = self.timing
        idle_ns = timing.t_ns + timing.forwarding_ns
        rtt_ns = timing.smoothed_rtt_ns or idle_ns
        wanted = SHARE * timing.bdp_bytes * rtt_ns / idle_ns
        self.window = max(int(wanted), timing.packet_bytes)

    def on_sack(self, acked, rtt_ns, ecn, under_way, now_ns):
        self.begin()

    def on_trim(self, size, under_way, now_ns):
        pass

    def on_loss(self, size):
        pass

    def on_penalty(self, penalty, restore, acked):
        pass


PLUGIN = {"congestion_control": {"fixed-rate": FixedRate}}
