"""What planes of growing size cost in each family: to check, to plan, to write tables for, in one run.

    .venv/bin/python benchmarks/families.py [HOSTS ...]

Two planes with 16 hosts a T0; a T0, a T1 and a rail switch have as many links up at every size, so links grow as hosts
do. Microseconds of CPU time a link, the median of three, each in a new process: `plan` numbers and names the whole
fabric, `uSIDs` are the routes of all nodes where each host talks to one peer in another T0, `hashed` those of switches
that hash, one for each T0 above the T0s (`routes` a link), `check` looks at every way between
every two T0s of a plane. `MiB` is what a plan keeps when each host has asked for its paths to 16 others.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.pool import Pool

from mrc_testbed.topos.families.clos2 import Clos2
from mrc_testbed.topos.families.clos3 import Clos3
from mrc_testbed.topos.families.rail import Rail
from mrc_testbed.topos.graph import Family, check
from mrc_testbed.topos.plan import Plan, build_plan
from mrc_testbed.topos.routes import Routing
from mrc_testbed.topos.shape import Shape
from mrc_testbed.topos.tables import routes_of

SIZES = (64, 128, 256, 512, 1024)
BELOW = 16
PEERS = 16
ROUNDS = 3
FAMILIES: dict[str, Callable[[int], Family]] = {
    "clos2": lambda hosts: Clos2(hosts // BELOW, 8, BELOW),
    "clos3": lambda hosts: Clos3(hosts // (2 * BELOW), 2, 4, 16, BELOW),
    "rail": lambda hosts: Rail(4, hosts // 4, 8, hosts // (4 * BELOW)),
}


def shape_of(family: Family) -> Shape:
    """Made again each time, so that nothing is known of it yet."""
    return Shape(2, family, 12_500_000, 40_000_000)


def all_routes(plan: Plan) -> int:
    """How many there are: each has to be made to be counted."""
    return sum(1 for node in plan.node_names for _ in routes_of(plan, node))


def talking(plan: Plan, peers: int) -> Iterator[tuple[int, int]]:
    """Each host with this number of others, the first of them in the next T0."""
    count = len(plan.hosts)
    for host in range(count):
        yield from ((host, (host + BELOW + step) % count) for step in range(peers))


def median_s(pool: Pool, action: Callable[..., object], *given: object) -> float:
    """Seconds of CPU time."""
    return statistics.median(pool.apply(cpu_s, (action, *given)) for _ in range(ROUNDS))


def cpu_s(action: Callable[..., object], *given: object) -> float:
    """Of one call."""
    began = time.process_time()
    action(*given)
    return time.process_time() - began


def checked(word: str, hosts: int) -> None:
    """As a plugin's family is."""
    check(FAMILIES[word](hosts))


def planned(word: str, hosts: int, routing: Routing = Routing.SRV6) -> Plan:
    """The whole fabric."""
    return build_plan(shape_of(FAMILIES[word](hosts)), routing)


def tables(word: str, hosts: int, routing: Routing) -> int:
    """All routes, made."""
    plan = planned(word, hosts, routing)
    return all_routes(plan.with_paths_between(talking(plan, 1)))


def kept_mib(word: str, hosts: int) -> float:
    """What a plan holds on to after paths were asked for."""
    plan = planned(word, hosts)
    pairs = list(talking(plan, PEERS))
    tracemalloc.start()
    for src, dst in pairs:
        for path in plan.paths(plan.hosts[src], plan.hosts[dst]):
            assert path.inner
            assert path.outer
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / (1 << 20)


def row(pool: Pool, word: str, hosts: int) -> str:
    """One size of one family."""
    links = shape_of(FAMILIES[word](hosts)).links
    plan_s = median_s(pool, planned, word, hosts)
    took_s = (
        plan_s,
        median_s(pool, tables, word, hosts, Routing.SRV6) - plan_s,
        median_s(pool, tables, word, hosts, Routing.ECMP_STATIC) - plan_s,
        median_s(pool, checked, word, hosts),
    )
    cells = [1e6 * took / links for took in took_s]
    cells.insert(3, tables(word, hosts, Routing.ECMP_STATIC) / links)
    kept = pool.apply(kept_mib, (word, hosts))
    return f"{word:8}{hosts:7}{links:8}" + "".join(f"{cell:9.1f}" for cell in (*cells, kept))


def main() -> None:
    """Prints the table."""
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    head = "".join(f"{name:>9}" for name in ("plan", "uSIDs", "hashed", "routes", "check", "MiB"))
    print(f"{'family':8}{'hosts':>7}{'links':>8}{head}")
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for word in FAMILIES:
            for hosts in sizes:
                print(row(pool, word, hosts), flush=True)


if __name__ == "__main__":
    main()
