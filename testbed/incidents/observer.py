"""What an observer knows of a case by a moment: the blind folder, read up to there. Pure but for reading it.

In virtual time nothing that an observer does can change the run, so it was run before, and is shown as it went.
"""

from __future__ import annotations

import csv
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrc_testbed.testbed.errors import UsageError
from mrc_testbed.testbed.expect import did_you_mean
from mrc_testbed.testbed.incidents.blind import EVENTS_FILE, SNAPSHOTS_FILE, TOPOLOGY_FILE
from mrc_testbed.testbed.incidents.case import CASE_FILE, CaseFolder
from mrc_testbed.testbed.incidents.observed import probes_of_case
from mrc_testbed.testbed.rundir.files import read_json, read_lines, text_lines
from mrc_testbed.testbed.rundir.tables import PORTS, SAMPLES

MOST_EVENTS = 500
"""In one answer; the next ones follow when they are asked for."""
MOST_ROWS = 200
NS = 1e9
Facts = dict[str, Any]


class UnknownThing(Exception):
    """A name that is not in the fabric; the text says what could be meant."""


class Timed:
    """Rows of one place in order of time."""

    def __init__(self) -> None:
        self.times_ns: list[int] = []
        self.rows: list[Facts] = []

    def add(self, t_ns: int, row: Facts) -> None:
        """The next row, no earlier than those before."""
        self.times_ns.append(t_ns)
        self.rows.append(row)

    def last(self, until_ns: int) -> tuple[int, Facts] | None:
        """The latest until then, with its time."""
        place = bisect_right(self.times_ns, until_ns)
        return (self.times_ns[place - 1], self.rows[place - 1]) if place else None

    def between(self, after_ns: int, until_ns: int) -> Iterable[tuple[int, Facts]]:
        """Those later than `after_ns`, until then."""
        begin, end = bisect_right(self.times_ns, after_ns), bisect_right(self.times_ns, until_ns)
        return zip(self.times_ns[begin:end], self.rows[begin:end], strict=True)


class Observer:
    """`now_ns`: how far it has come; only `wait` moves that. Seconds count from the workload's start."""

    def __init__(self, case: CaseFolder) -> None:
        """Raises UsageError for a case that was not observed, or whose folder lacks something; RecordError."""
        self.folder, self.about = case.folder, case.about()
        if "start_ns" not in self.about:
            raise UsageError(f"{case.folder}: was not run yet; `incident observe {case.folder}` does")
        self._start_ns, self._end_ns = int(self.about["start_ns"]), int(self.about["end_ns"])
        self.now_ns = self._start_ns
        self._fabric = _topology(case.folder)
        self.hosts = [host["name"] for host in self._fabric["hosts"]]
        self.switches = [switch["name"] for switch in self._fabric["switches"]]
        self.links = {link["name"]: link for link in self._fabric["links"]}
        self._samples = _by_port(case.folder / SAMPLES.file)
        self._counts = _by_port(case.folder / PORTS.file)
        self._snapshots: Mapping[str, Timed] = defaultdict(Timed)
        for line in read_lines(case.folder / SNAPSHOTS_FILE):
            self._snapshots[line["host"]].add(line["t_ns"], line)
        self._events = Timed()
        self._probes = Timed()
        for line in sorted(read_lines(case.folder / EVENTS_FILE), key=lambda line: int(line["t_ns"])):
            (self._probes if line.get("event") == "map_window" else self._events).add(line["t_ns"], line)
        self._probed: Mapping[str, Sequence[Sequence[str]]] = {
            host: [probe.links for probe in probes] for host, probes in probes_of_case(case).items()
        }
        """By host what each of its probes goes up by."""
        self._ports: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for link in self.links.values():
            for own, peer in ((link["near"], link["far"]), (link["far"], link["near"])):
                self._ports[own["node"]].append((own["name"], peer["node"]))

    @property
    def now_s(self) -> float:
        """Since the workload's start."""
        return self._seconds(self.now_ns)

    @property
    def left_s(self) -> float:
        """Until nothing more is shown."""
        return (self._end_ns - self.now_ns) / NS

    def _seconds(self, t_ns: int) -> float:
        return (t_ns - self._start_ns) / NS

    def topology(self) -> Facts:
        """Hosts, switches, links and ways as planned, the workload, and T."""
        told = {name: self.about[name] for name in ("fabric", "workload", "lasts_s", "rtt_ns", "base_rtt_ns")}
        return {**told, **{name: self._fabric[name] for name in ("hosts", "switches", "links", "ways")}}

    def wait(self, seconds: float) -> Facts:
        """Go on by this time, at most to the end."""
        before_ns = self.now_ns
        self.now_ns = min(self.now_ns + round(seconds * NS), self._end_ns)
        events = sum(1 for _ in self._events.between(before_ns, self.now_ns))
        return {**self.now(), "events": events}

    def now(self) -> Facts:
        """The time, and what is left of it."""
        return {"now_s": self.now_s, "left_s": self.left_s, "over": self.now_ns >= self._end_ns}

    def host(self, name: str) -> Facts:
        """What a host told last, and its ports. Counters that are 0 are left out. Raises UnknownThing."""
        self._require(name, self.hosts, "host")
        found: Facts = {"host": name, "ports": self._ports_of(name)}
        told = self._snapshots[name].last(self.now_ns)
        if told:
            t_ns, line = told
            counters = {key: count for key, count in line["counters"].items() if count}
            rest = {key: line.get(key) for key in ("lost", "stalled", "lateness")}
            found |= {"t_s": self._seconds(t_ns), "counters": counters, **rest}
        return found

    def switch(self, name: str) -> Facts:
        """The ports of a switch, as they were counted last. Raises UnknownThing."""
        self._require(name, self.switches, "switch")
        return {"switch": name, "ports": self._ports_of(name)}

    def link(self, name: str, seconds: float) -> Facts:
        """Both ends of a link, at each time that they were counted in these last seconds. Raises UnknownThing."""
        self._require(name, self.links, "link")
        after_ns = max(self.now_ns - round(seconds * NS), self._start_ns - 1)
        ends = {end: self.links[name][end] for end in ("near", "far")}
        times: dict[int, Facts] = {}
        for side, end in ends.items():
            for t_ns, row in self._samples[end["node"], end["name"]].between(after_ns, self.now_ns):
                times.setdefault(t_ns, {})[side] = row
        rows = [{"t_s": self._seconds(t_ns), **row} for t_ns, row in sorted(times.items())]
        return {"link": name, "rows": rows[-MOST_ROWS:], "more": len(rows) > MOST_ROWS}

    def events(self, since_s: float) -> Facts:
        """What hosts told of since then, as it is in events.jsonl; the first ones where there are too many."""
        after_ns = self._start_ns + round(since_s * NS)
        found = [*self._events.between(after_ns, self.now_ns)]
        shown = found[:MOST_EVENTS]
        if len(found) > MOST_EVENTS:  # those of one moment stay together, as the next question begins after it
            last_ns = found[MOST_EVENTS][0]
            shown = shown[: bisect_left([t_ns for t_ns, _ in shown], last_ns)] or found[:MOST_EVENTS]
        rows = [{"t_s": self._seconds(t_ns), **line} for t_ns, line in shown]
        return {"events": rows, "more": len(shown) < len(found)}

    def probes(self, since_s: float) -> Facts:
        """Of each probe that hosts have told of since then: who sends it, up which links and back, how many, how many
        of these were lost. What is clean is left out."""
        sent: Counter[tuple[str, int]] = Counter()
        lost: Counter[tuple[str, int]] = Counter()
        for _, line in self._probes.between(self._start_ns + round(since_s * NS), self.now_ns):
            sent.update((line["host"], number) for number in line["order"])
            lost.update((line["host"], number) for number, _ in line["lost"])
        rows = [
            {"host": host, "links": list(self._probed[host][number]), "sent": sent[host, number], "lost": count}
            for (host, number), count in sorted(lost.items())
        ]
        return {"sent": sent.total(), "lossy": rows}

    def _ports_of(self, node: str) -> dict[str, Facts]:
        found: dict[str, Facts] = {}
        for port, peer in self._ports[node]:
            facts: Facts = {"peer": peer}
            for table in (self._samples, self._counts):
                told = table[node, port].last(self.now_ns)
                facts |= told[1] if told else {}
            found[port] = facts
        return found

    def _require(self, name: object, known: Iterable[str], noun: str) -> None:
        known = [*known]
        if name not in known:
            some = did_you_mean(str(name), known) or f"; there are {known[0]}..{known[-1]}"
            raise UnknownThing(f"there is no {noun} {name!r}{some}")


def _topology(folder: Path) -> Facts:
    found = read_json(folder / TOPOLOGY_FILE)
    if found is None:
        raise UsageError(f"{folder}: lacks {TOPOLOGY_FILE} beside its {CASE_FILE}; observe the case again")
    return found


def _by_port(path: Path) -> dict[tuple[str, str], Timed]:
    found: dict[tuple[str, str], Timed] = defaultdict(Timed)
    for row in csv.DictReader(line for line in text_lines(path) if not line.isspace()):
        t_ns, place = int(row.pop("t_ns")), (row.pop("node"), row.pop("port"))
        found[place].add(t_ns, {name: int(value) for name, value in row.items()})
    return found
