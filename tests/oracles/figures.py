"""Each metric again, from the raw files: a list of values or a number for a run, a window and a scope; None where the
oracle has no opinion. A scope is `""`, a host, a pair `h0->h1`, or the name of a job."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator

from tests.oracles.flow_figures import FLOW_FIGURES, Found, Values
from tests.oracles.raw import Raw, Row, Window

MANY_BYTES = 40 * 4400
"""Twice as many as the judge wants before it tells how a switch shares its load."""
OUT, IN_USE = "ASSUMED_BAD", ("GOOD", "SKIP")


def jobs(raw: Raw) -> dict[str, Row]:
    """Entries of the workload that are jobs of steps, by name; the only one has none."""
    trains = [entry["train"] for entry in raw.scenario["workload"] if "train" in entry]
    return {train.get("name", "") or "job": train for train in trains}


def ranks_of(raw: Raw, job: Row) -> list[str]:
    """The hosts of a job."""
    return raw.hosts if job.get("hosts", "all") == "all" else list(job["hosts"])


def steps(raw: Raw, scope: str) -> Iterator[Row]:
    """Finished steps after the warm-up: of one host as it saw them, else of all ranks of each job."""
    table = raw.table("completions")
    for name, job in jobs(raw).items():
        warm_up = job.get("warm_up", 0)
        if scope in ranks_of(raw, job):
            yield from (row for row in table if row["host"] == scope and row["step"] >= warm_up)
        elif scope in ("", name):
            ranks, before = set(ranks_of(raw, job)), 0
            for number in range(warm_up + job["steps"]):
                rows = [row for row in table if row["step"] == number and row["host"] in ranks]
                if {row["host"] for row in rows} != ranks:
                    break
                begin, end = max(before, min(row["begin_ns"] for row in rows)), max(row["end_ns"] for row in rows)
                if number >= warm_up:
                    total, wrong = sum(row["bytes"] for row in rows), sum(row["bytes_wrong"] for row in rows)
                    yield {"begin_ns": begin, "end_ns": end, "bytes": total, "bytes_wrong": wrong, "job": name}
                before = end


def _inside(raw: Raw, window: Window, scope: str) -> list[Row]:
    return [row for row in steps(raw, scope) if window.counts(row["begin_ns"], row["end_ns"])]


def step_time(raw: Raw, window: Window, scope: str) -> Found:
    return [row["end_ns"] - row["begin_ns"] for row in _inside(raw, window, scope)] or None


def steps_done(raw: Raw, window: Window, scope: str) -> Found:
    if not jobs(raw) or not (_inside(raw, window, scope) or window.words == ""):
        return None
    return len(_inside(raw, window, scope))


def goodput(raw: Raw, window: Window, scope: str) -> Found:
    """Of steps."""
    if scope in raw.hosts:
        return None
    rates = []
    for name in [scope] if scope else list(jobs(raw)):
        rows = _inside(raw, window, name)
        covered, until = 0, 0
        for row in sorted(rows, key=lambda row: row["begin_ns"]):
            covered += max(0, row["end_ns"] - max(until, row["begin_ns"]))
            until = max(until, row["end_ns"])
        if covered:
            rates.append((sum(row["bytes"] for row in rows), covered))
    if not rates or (window.words == "" and len(jobs(raw)) > 1 and not scope):
        return None
    return sum(moved * 1e9 / covered for moved, covered in rates)


def wait_time(raw: Raw, window: Window, scope: str) -> Found:
    """What a rank waited in each of its steps for all of its peers, or for one of a pair."""
    rank, _, peer = scope.partition("->")
    waits = [row for row in raw.table("waits") if rank in ("", row["host"]) and peer in ("", row["peer"])]
    if scope in jobs(raw) or not waits:
        return None
    total: dict[tuple[str, int], int] = defaultdict(int)
    for row in waits:
        total[row["host"], row["step"]] += row["wait_ns"]
    found = []
    for host in dict.fromkeys(row["host"] for row in waits):
        warm_up = next(job.get("warm_up", 0) for job in jobs(raw).values() if host in ranks_of(raw, job))
        for row in raw.table("completions"):
            if row["host"] == host and row["step"] >= warm_up and window.counts(row["begin_ns"], row["end_ns"]):
                found.append(total[host, row["step"]])
    return found or None


def bytes_wrong(raw: Raw, window: Window, scope: str) -> Found:
    if not jobs(raw):
        rows = [row for row in raw.table("flows") if window.counts(row["begin_ns"], row["end_ns"])]
        return sum(row["bytes_wrong"] for row in rows) if rows and not scope else None
    return sum(row["bytes_wrong"] for row in _inside(raw, window, scope)) if _inside(raw, window, scope) else None


def unfinished(raw: Raw, window: Window, scope: str) -> Found:
    if not jobs(raw) or scope or raw.done_ns is None:
        return None
    done = {(row["host"], row["step"]) for row in raw.table("completions")}
    wanted = {(host, job["steps"] + job.get("warm_up", 0)) for job in jobs(raw).values() for host in ranks_of(raw, job)}
    return sum(any((host, step) not in done for step in range(number)) for host, number in wanted)


def qp_errors(raw: Raw, window: Window, scope: str) -> Found:
    host, _, peer = scope.partition("->")
    ends = [(line["host"], line["peer"]) for line in raw.named("qp_error") if window.holds(line["t_ns"])]
    if peer:
        return sum({host, peer} == set(end) for end in ends)
    return sum(host in ("", end[0]) for end in ends)


def job_died(raw: Raw, window: Window, scope: str) -> Found:
    return None if "->" in scope else float(raw.done_ns is None and bool(raw.named("qp_error")))


def died_at(raw: Raw, window: Window, scope: str) -> Found:
    times = [] if "->" in scope else [line["t_ns"] for line in raw.named("qp_error")]
    return max(0, min(times) - raw.start_ns) if times and raw.done_ns is None else None


def _changes(wanted: Callable[[str, str], bool]) -> Callable[[Raw, Window, str], Found]:
    def count(raw: Raw, window: Window, scope: str) -> Found:
        host, _, peer = scope.partition("->")
        return sum(
            wanted(line["from"], line["to"])
            and window.holds(line["t_ns"])
            and host in ("", line["host"])
            and peer in ("", line["peer"])
            for line in raw.named("ev_state")
        )

    return count


def unrestored_evs(raw: Raw, window: Window, scope: str) -> Found:
    host, _, peer = scope.partition("->")
    last = {(line["host"], line["peer"], line["plane"], line["uplink"]): line["to"] for line in raw.named("ev_state")}
    return sum(state == OUT and host in ("", key[0]) and peer in ("", key[1]) for key, state in last.items())


def _links_of(raw: Raw, host: str, peer: str, plane: int, uplink: int) -> set[str]:
    """The links of a path over two tiers."""
    below = raw.scenario["fabric"]["hosts_per_t0"]
    here, there = int(host[1:]) // below, int(peer[1:]) // below
    up = {f"p{plane}-t0-{here}:p{plane}-t1-{uplink}", f"p{plane}-t0-{there}:p{plane}-t1-{uplink}"}
    ends = {f"{host}:p{plane}-t0-{here}", f"{peer}:p{plane}-t0-{there}"}
    return ends | (up if here != there else set())


def _retired(raw: Raw, window: Window, scope: str) -> list[tuple[float, float]]:
    """Time to leave and time of use of each EV that a fault broke: by the latest fault that can be its cause."""
    host, _, peer = scope.partition("->")
    after = 10 * raw.environment["base_rtt_ns"]
    links = {
        (line["fault"], line["t_ns"]): set(line.get("links", ()))
        for line in raw.history
        if line["op"] == "inject" and line["type"] == "ok"
    }
    found = []
    for line in raw.named("ev_state"):
        if line["from"] not in IN_USE or line["to"] != OUT:
            continue
        path = _links_of(raw, line["host"], line["peer"], line["plane"], line["uplink"])
        lost = line.get("first_lost_tx_ns") or 0
        causes = [
            (placed, name)
            for name, tried, placed, healed in raw.faults
            if links[name, placed] & path
            and line["t_ns"] >= tried
            and (line["t_ns"] <= healed + after or tried <= lost <= healed)
        ]
        if causes:
            placed, name = max(causes)
            mine = host in ("", line["host"]) and peer in ("", line["peer"])
            if mine and window.words in ("", "during faults", f"during {name}"):
                left = (line.get("last_tx_ns") or 0) - max(placed, raw.start_ns)
                found.append((max(0, line["t_ns"] - max(lost, placed)), max(0, left)))
    return found


def recovery(raw: Raw, window: Window, scope: str) -> Found:
    return [took for took, _ in _retired(raw, window, scope)] or None if _of_faults(window) else None


def exposure(raw: Raw, window: Window, scope: str) -> Found:
    return [left for _, left in _retired(raw, window, scope)] or None if _of_faults(window) else None


def _of_faults(window: Window) -> bool:
    return not window.words.startswith("from")


def _final(name: str) -> Callable[[Raw, Window, str], Found]:
    """A counter at the end; in windows snapshots decide, which is another oracle's."""

    def count(raw: Raw, window: Window, scope: str) -> Found:
        if window.words or "->" in scope or scope in jobs(raw):
            return None
        hosts = [scope] if scope else raw.hosts
        counted = [raw.counters["hosts"][host]["counters"] for host in hosts]
        return sum(one[name] for one in counted) if all(name in one for one in counted) else None

    return count


def packets_lost(raw: Raw, window: Window, scope: str) -> Found:
    if window.words or scope in jobs(raw):
        return None
    host, _, peer = scope.partition("->")
    if peer:
        return sum(one["lost"] for one in raw.counters["hosts"][host]["qps"].values() if one["peer"] == peer)
    counted = [raw.counters["hosts"][name]["counters"] for name in ([host] if host else raw.hosts)]
    return sum(value for one in counted for name, value in one.items() if name.startswith("lost_"))


def lost_per_qp(raw: Raw, window: Window, scope: str) -> Found:
    if window.words or scope in jobs(raw):
        return None
    host, _, peer = scope.partition("->")
    return [
        one["lost"]
        for name in ([host] if host else raw.hosts)
        for one in raw.counters["hosts"][name]["qps"].values()
        if one["sent"] and peer in ("", one["peer"])
    ] or None


def wasted(raw: Raw, window: Window, scope: str) -> Found:
    if window.words or scope:
        return None
    counted = [one["counters"] for one in raw.counters["hosts"].values()]
    return sum(one["bytes_sent"] for one in counted) / sum(one["bytes_delivered"] for one in counted) - 1


def out_of_order(raw: Raw, window: Window, scope: str) -> Found:
    if window.words or "->" in scope or scope in jobs(raw) or raw.scenario.get("transport", "mrc") != "mrc":
        return None
    counted = [raw.counters["hosts"][name]["counters"] for name in ([scope] if scope else raw.hosts)]
    came = sum(one["data_received"] for one in counted)
    return sum(one["reordered"] for one in counted) / came if came else None


def queue_drops(raw: Raw, window: Window, scope: str) -> Found:
    return sum(port["drops"] for ports in raw.counters["queues"].values() for port in ports.values())


def marks(raw: Raw, window: Window, scope: str) -> Found:
    ports = [port for ports in raw.counters["ports"].values() for port in ports.values()]
    return sum(port.get("out_marked", 0) + port.get("out_other_marked", 0) for port in ports)


def stall(raw: Raw, window: Window, scope: str) -> Found:
    """Stalls that ended, of each QP that sends data; whole, or of a window of times the part inside. A stall that goes
    on is another oracle's."""
    if scope in jobs(raw) or raw.done_ns is None:
        return None
    host, _, peer = scope.partition("->")
    longest = {
        (name, one["peer"], qp): 0.0
        for name in raw.hosts
        for qp, one in raw.counters["hosts"][name]["qps"].items()
        if one["sent"]
    }
    for line in raw.named("stall"):
        key, begin, end = (line["host"], line["peer"], line["qp"]), line["begin_ns"], line["end_ns"]
        took = float(end - begin) if window.counts(begin, end) else 0.0
        if window.words.startswith("from"):
            took = max(0.0, min(end, window.spans[0][1]) - max(begin, window.spans[0][0]))
        longest[key] = max(longest.get(key, 0.0), took)
    return [ns for key, ns in longest.items() if host in ("", key[0]) and peer in ("", key[1])] or None


def _carried(raw: Raw, window: Window) -> tuple[dict[tuple[str, str], int], float]:
    """What each port sent between two readings that both lie in the workload and belong to the window, and the time."""
    readings: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    for row in raw.table("samples"):
        readings[row["t_ns"]][row["node"], row["port"]] = row["tx_bytes"]
    carried: dict[tuple[str, str], int] = defaultdict(int)
    lasted = 0
    for since, until in itertools.pairwise(sorted(readings)):
        inside = raw.start_ns <= since and until <= (raw.done_ns or 0)
        if inside and window.counts(since, until) and readings[since].keys() == readings[until].keys():
            lasted += until - since
            for port, sent in readings[until].items():
                carried[port] += sent - readings[since][port]
    return carried, lasted / 1e9


def link_load(raw: Raw, window: Window, scope: str) -> Found:
    """All links have the rate of ports."""
    carried, seconds = _carried(raw, window)
    rate_bps = float(raw.scenario["fabric"]["port_rate"].removesuffix("mbit")) * 1e6
    return None if scope or not seconds else [8 * sent / seconds / rate_bps for sent in carried.values()]


def uplink_share(raw: Raw, window: Window, scope: str) -> Found:
    """Of switches whose uplinks carry a tenth of what those of the busiest do."""
    by_switch: dict[str, Values] = defaultdict(list)
    for (node, port), sent in _carried(raw, window)[0].items():
        if "-t" in node and port.startswith("up"):
            by_switch[node].append(sent)
    busiest = max((sum(each) / len(each) for each in by_switch.values()), default=0.0)
    if scope or busiest < MANY_BYTES:
        return None
    used = [each for each in by_switch.values() if sum(each) / len(each) >= busiest / 10]
    return [sent / (sum(each) / len(each)) for each in used for sent in each]


def _told(raw: Raw, op: str) -> list[Row]:
    """Lines of one kind of the mapper."""
    file = raw.folder / "map.jsonl"
    lines = map(json.loads, file.read_text().splitlines()) if file.exists() else []
    return [line for line in lines if line["op"] == op]


def _broken(raw: Raw) -> list[tuple[str, str, int, float]]:
    """Name, link, and times of each fault; the scenario has faults of one link alone."""
    links = {line["fault"]: line["links"][0] for line in raw.history if line["op"] == "inject"}
    return [(name, links[name], placed, healed) for name, _, placed, healed in raw.faults]


def located(raw: Raw, window: Window, scope: str) -> Found:
    return _seen(raw, window, "accuse") if _mapped(raw, scope) and _of_faults(window) else None


def cleared(raw: Raw, window: Window, scope: str) -> Found:
    return _seen(raw, window, "clear") if _mapped(raw, scope) and _of_faults(window) else None


def _seen(raw: Raw, window: Window, op: str) -> Values | None:
    """From when a fault was in place until it was named, or from its heal until it was not."""
    found = []
    for name, link, placed, healed in _broken(raw):
        since = placed if op == "accuse" else healed
        times = [line["t_ns"] - since for line in _told(raw, op) if line["component"] == link and line["t_ns"] > since]
        if times and window.words in ("", "during faults", f"during {name}"):
            found.append(min(times))
    return found or None


def _mapped(raw: Raw, scope: str) -> bool:
    return "mapper" in raw.scenario and not scope


def _right(raw: Raw, line: Row) -> bool:
    return any(
        line["component"] == link and placed <= line["t_ns"] <= healed for _, link, placed, healed in _broken(raw)
    )


def map_precision(raw: Raw, window: Window, scope: str) -> Found:
    said = [_right(raw, line) for line in _told(raw, "accuse") if window.holds(line["t_ns"])]
    return sum(said) / len(said) if said and _mapped(raw, scope) else None


def map_recall(raw: Raw, window: Window, scope: str) -> Found:
    if not _mapped(raw, scope):
        return None
    found = [
        any(line["component"] == link and placed <= line["t_ns"] <= healed for line in _told(raw, "accuse"))
        for _, link, placed, healed in _broken(raw)
        if window.holds(placed)
    ]
    return sum(found) / len(found) if found else None


def falsely_accused(raw: Raw, window: Window, scope: str) -> Found:
    if not _mapped(raw, scope):
        return None
    return sum(not _right(raw, line) for line in _told(raw, "accuse") if window.holds(line["t_ns"]))


FIGURES: dict[str, Callable[[Raw, Window, str], Found]] = {
    **{"steps_done": steps_done, "step_time": step_time, "goodput": goodput, "wait_time": wait_time},
    **{"bytes_wrong": bytes_wrong, "unfinished": unfinished, "qp_errors": qp_errors, "job_died": job_died},
    **{"died_at": died_at, "recovery": recovery, "exposure": exposure, "unrestored_evs": unrestored_evs},
    "evs_retired": _changes(lambda old, new: old in IN_USE and new == OUT),
    "evs_restored": _changes(lambda old, new: old == OUT and new in IN_USE),
    **{"packets_lost": packets_lost, "lost_per_qp": lost_per_qp, "wasted": wasted, "out_of_order": out_of_order},
    **{"queue_drops": queue_drops, "marks": marks, "stall": stall, **FLOW_FIGURES},
    **{"retransmissions": _final("retransmitted"), "timeouts": _final("timeouts"), "nacks": _final("nacks_received")},
    **{"trims": _final("trimmed_received"), "ecn_skips": _final("evs_skipped")},
    **{"located": located, "cleared": cleared, "map_precision": map_precision, "map_recall": map_recall},
    "falsely_accused": falsely_accused,
    **{"data_on_bad_ev": _final("data_on_bad_ev"), "link_load": link_load, "uplink_share": uplink_share},
}
