"""A detector: each path that a host gives up votes for its links and switches, and what has most votes is to blame.

mrc-testbed incident serve cases/5e8d4dcbf9e0 -- python3 docs/examples/detector.py
"""

import json
from collections import Counter
from itertools import pairwise

LOOK_S, MEMORY_S, LEAST_VOTES = 0.5, 3.0, 3


def ask(tool, **more):
    print(json.dumps({"tool": tool, **more}), flush=True)
    return json.loads(input())


fabric = ask("topology")
group = {host["name"]: host["group"] for host in fabric["hosts"]}
names = {frozenset((link["near"]["node"], link["far"]["node"])): link["name"] for link in fabric["links"]}


def crossed(host, peer, plane, uplink, **_):
    a, b = group[host], group[peer]
    places = [f"t0-{a}"] if a == b else fabric["ways"][f"{a}>{b}"][uplink]
    nodes = [host, *(f"p{plane}-{place}" for place in places), peer]
    return [names[frozenset(ends)] for ends in pairwise(nodes)] + nodes[1:-1]


votes, told_s, now = [], 0.0, {"over": False}
while not now["over"]:
    now = ask("wait", s=LOOK_S)
    for event in ask("events", since_s=told_s)["events"]:
        told_s = event["t_s"]
        if event["event"] == "ev_state" and event["to"] == "ASSUMED_BAD":
            votes += [(told_s, place) for place in crossed(**event)]
    votes = [(t_s, place) for t_s, place in votes if t_s > now["now_s"] - MEMORY_S]
    counts = Counter(place for _, place in votes)
    best = [place for place, count in counts.most_common(1) if count >= LEAST_VOTES]
    ask("answer", state="incident" if best else "healthy", p=0.7, incidents=[{"where": best}] if best else [])
