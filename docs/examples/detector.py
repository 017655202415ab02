"""A detector in 40 lines: each path that a host gives up votes for all its links, and the link with most votes is it.

mrc-testbed incident serve cases/5e8d4dcbf9e0 -- python3 docs/examples/detector.py
"""

import json
import sys
from collections import Counter
from itertools import pairwise

LOOK_S, MEMORY_S, LEAST_VOTES = 0.5, 3.0, 3


def ask(tool, **more):
    sys.stdout.write(json.dumps({"tool": tool, **more}) + "\n")
    sys.stdout.flush()
    return json.loads(sys.stdin.readline())


fabric = ask("topology")
group = {host["name"]: host["group"] for host in fabric["hosts"]}


def crossed(host, peer, plane, uplink):
    """The links of a path, each named with the end nearer to the hosts first."""
    a, b = group[host], group[peer]
    places = [f"t0-{a}"] if a == b else fabric["ways"][f"{a}>{b}"][uplink]
    nodes = [f"p{plane}-{place}" for place in places]
    between = [":".join(sorted(pair, key=lambda node: node.split("-")[1])) for pair in pairwise(nodes)]
    return [f"{host}:{nodes[0]}", *between, f"{peer}:{nodes[-1]}"]


votes, told_s, now = [], 0.0, {"over": False}
while not now["over"]:
    now = ask("wait", s=LOOK_S)
    for event in ask("events", since_s=told_s)["events"]:
        told_s = event["t_s"]
        if event["event"] == "ev_state" and event["to"] == "ASSUMED_BAD":
            path = crossed(event["host"], event["peer"], event["plane"], event["uplink"])
            votes += [(event["t_s"], link) for link in path]
    votes = [vote for vote in votes if vote[0] > now["now_s"] - MEMORY_S]
    best = Counter(link for _, link in votes).most_common(1)
    guilty = [link for link, count in best if count >= LEAST_VOTES]
    broken = [{"where": guilty, "p": 0.6}] if guilty else []
    ask("answer", state="incident" if guilty else "healthy", p=0.7, incidents=broken)
