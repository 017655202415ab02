"""A scenario of MRC over switches that hash: an incast that is trimmed, and a far link that dies in silence."""

SCENARIO = """
name: hashed
transport: mrc-hashed
fabric: {planes: 2, t0_groups: 2, t1: 2, hosts_per_t0: 2, port_rate: 12.5mbit, rtt: 20ms}
workload:
  - incast: {to: h2, from: [h0, h1, h3], for: 3s}
  - write: {from: h2, to: h0, for: 3s}
faults:
  - {at: 1s, link-loss: "p0-t0-1:p0-t1-*", loss: 100%, for: 1s, name: far}
expect:
  - qp_errors == 0
  - bytes_wrong == 0
  - trims >= 1
  - nacks >= 1
  - evs_retired >= 1 during far
  - unrestored_evs == 0
"""
