"""What a wrong fault is told: by itself, beside another, and what may look wrong and is not."""

from __future__ import annotations

import pytest

from mrc_testbed.testbed.scenario import load_scenario_text
from tests.unit.scenario.test_mistakes import HEAD, LINK, fault, mistakes, two


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "at: 6s, port-flap: h0, for: 4s",
            "7:29: faults.0.for: unknown key 'for'; known here: at, name, port-flap, period",
        ),
        ("at: 6s, for: 4s, chaos: 3", "7:30: faults.0.chaos: must be a mapping of keys, such as {link-flap: 6/min,"),
        ("at: 6s, link-flop: a", "unknown fault kind 'link-flop'; did you mean 'link-flap'?"),
        (
            "at: 6s, for: 4s",
            "has no fault kind; add one of link-down, link-flap, port-flap, transceiver-flap",
        ),
        (f"at: 6s, link-down: '{LINK}', switch-reboot: p0-t1-0, for: 1s", "has two kinds, link-down and switch-reboot"),
        (f"at: 6s, link-down: '{LINK}'", "faults.0: the key 'for' is missing; write for example `for: 4s`"),
        (f"link-down: '{LINK}', for: 4s", "the key 'at' is missing; write for example `at: 6s`"),
        (f"at: -6s, link-down: '{LINK}', for: 4s", "s.yaml:7:10: faults.0.at: -6s is negative"),
        (f"at: 6s, link-down: '{LINK}', for: 0s", "faults.0.for: must be more than 0"),
        (f"at: 6s, link-down: '{LINK}', for: 4s, boot: 3s", "faults.0.boot: unknown key 'boot'"),
        ("at: 6s, link-down: p0-t1-1:p0-t0-0, for: 4s", "the end nearer to the hosts comes first: 'p0-t0-0:p0-t1-1'"),
        ("at: 6s, link-down: p0-t0-0:p0-t1-7, for: 4s", "there is no link 'p0-t0-0:p0-t1-7'; did you mean"),
        ("at: 6s, link-down: nowhere, for: 4s", "there is no link 'nowhere'; there are h0:p0-t0-0..p1-t0-1:p1-t1-1"),
        ("at: 6s, link-down: p0-t1-1, for: 4s", "p0-t1-1 is one node; link-down needs a link by its two ends"),
        ("at: 6s, link-flap: h3, period: 2s, count: 1", "h3 is one node; link-flap needs a link by its two ends"),
        ("at: 6s, link-down: 3, for: 4s", "faults.0.link-down: must be one name or a list of names"),
        ("at: 6s, link-down: [], for: 4s", "must be one name or a list of names"),
        (
            f"at: 6s, link-down: ['{LINK}', '{LINK}'], for: 4s",
            "faults.0.link-down.1: duplicate target p0-t0-0:p0-t1-1",
        ),
        (f"at: 6s, link-down: ['{LINK}', 'x'], for: 4s", "7:46: faults.0.link-down.1: there is no link 'x'"),
        ("at: 6s, switch-reboot: h3, boot: 3s", "h3 is a host; switch-reboot needs a switch, such as p1-t1-1"),
        (f"at: 6s, switch-reboot: '{LINK}', boot: 3s", f"{LINK} is not a switch; switch-reboot needs one"),
        ("at: 6s, switch-reboot: p0-t1-9, boot: 3s", "there is no switch 'p0-t1-9'; did you mean"),
        (f"at: 6s, link-flap: '{LINK}', period: 2s, count: 0", "faults.0.count: must be at least 1, such as 3; got 0"),
        (f"at: 6s, link-flap: '{LINK}', period: 0s, count: 1", "faults.0.period: must be more than 0"),
        (f"at: 6s, link-flap: '{LINK}', period: 2s, count: 1, duty: 1.0", "faults.0.duty: must be less than 1"),
        (f"at: 6s, link-flap: '{LINK}', period: 2s, count: 1, duty: 0.0", "faults.0.duty: must be more than 0"),
        (f"at: 6s, link-flap: '{LINK}', period: 2s, count: 1, duty: half", "faults.0.duty: must be a number"),
        (f"at: 6s, link-flap: '{LINK}', period: 2s, count: 1, duty: .nan", "faults.0.duty: must be"),
        (
            f"at: 6s, link-flap: '{LINK}', period: 1ms, count: 1",
            "makes 500us down and 500us up; both must be at least 1ms",
        ),
        (f"at: 6s, link-down: '{LINK}', for: 4s, name: faults", "'faults' is reserved in expectations"),
        (f"at: 6s, link-down: '{LINK}', for: 4s, name: 'A B'", "faults.0.name: 'A B' is not a name"),
        (
            f"at: cold start, link-down: '{LINK}', for: 4s",
            "7:10: faults.0.at: 'cold start' is not a time; did you mean",
        ),
        (f"at: soon, link-down: '{LINK}', for: 4s", "faults.0.at: 'soon' is not a duration"),
        ("at: 1s, deny: p0-t0-1, for: 1s", "7:20: faults.0.deny: p0-t0-1 is a T0; deny a whole plane such as p1"),
        ("at: 1s, deny: [p1, p7], for: 1s", "7:25: faults.0.deny.1: there is no plane 7; there are p0..p1"),
        ("at: 1s, deny: [p1, p1], for: 1s", "faults.0.deny.1: duplicate target p1"),
        ("at: 1s, deny: [p0, p1], for: 1s", "7:25: faults.0.deny.1: leaves no path from h0 to h"),
        ("at: 1s, deny: p1, for: 1s, hosts: [h8]", "7:41: faults.0.hosts.0: there is no host 'h8'; there are h0..h3"),
        ("at: 1s, deny: p1", "faults.0: the key 'for' is missing"),
        ("at: cold-start, deny: p1, for: 1s", "faults.0.at: must be a time such as 6s; use endpoint.denylist"),
        (f"at: 600s, link-down: '{LINK}', for: 4s", "begins at 600s, but the workload takes about 34.3s in all"),
    ],
)
def test_a_wrong_fault(line: str, says: str) -> None:
    assert any(says in problem for problem in mistakes(fault(line)))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("at: 1s, port-flap: NIC links, period: 2ms, count: 10000", "faults.0.port-flap"),
        ("at: 1s, for: 9s, chaos: {link-flap: {times: 60/s, period: 2ms, count: 10000}}", "faults.0.chaos.link-flap"),
    ],
)
def test_more_cycles_than_anybody_waits_for(line: str, place: str) -> None:
    """They are not drawn before they are refused: these would be 80 000, and millions."""
    assert any(f"{place}: is more than 10000 cycles, the limit of one entry" in one for one in mistakes(fault(line)))


def test_faults_after_each_other_or_apart_are_fine() -> None:
    after = two(f"at: 1s, link-down: '{LINK}', for: 1s", f"at: 2s, link-down: '{LINK}', for: 1s")
    apart = two(f"at: 1s, link-down: '{LINK}', for: 1s", "at: 1s, switch-reboot: p0-t1-0, boot: 1s")
    for text in (after, apart):
        assert len(load_scenario_text(text).faults) == 2


def test_a_fault_beyond_the_time_limit() -> None:
    text = fault(f"at: 10s, link-down: '{LINK}', for: 10s") + "time_limit: 19s\n"
    assert "faults.0.at: ends at 20s, after the time limit of 19s" in mistakes(text)[0]


def test_a_fault_may_begin_up_to_half_again_the_estimate() -> None:
    scenario = load_scenario_text(HEAD)
    edge = scenario.estimate_ns * 3 // 2
    assert load_scenario_text(fault(f"at: {edge}ns, link-down: '{LINK}', for: 1s")).faults
    assert mistakes(fault(f"at: {edge + 1}ns, link-down: '{LINK}', for: 1s"))


@pytest.mark.parametrize(
    "drawn",
    [
        "at: 5s, link-down: any of links, for: 1s",
        f"at: 5s, link-flap: '{LINK}', period: 1s, count: 1, jitter: 10%",
        "at: 5s, chaos: {link-down: 6/min}, for: 10s",
    ],
)
def test_entries_of_one_name_draw_nothing(drawn: str) -> None:
    text = two(f"at: 1s, link-down: '{LINK}', for: 1s, name: a", f"{drawn}, name: a")
    assert "faults.1.name: duplicate name 'a'; fault 0 has it" in mistakes(text)[0]


def test_entries_of_one_name_are_one_fault() -> None:
    text = two(f"at: 5s, link-down: '{LINK}', for: 1s, name: a", "at: 1s, switch-reboot: p0-t1-0, boot: 1s, name: a")
    found = load_scenario_text(text + "expect: [qp_errors == 0 from 1s to a heals]\n").occurrences
    assert [(one.key, one.kind) for one in found] == [(("a", 0), "switch-reboot"), (("a", 1), "link-down")]


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (
            "at: 1s, deny: p1, for: 2s",
            "at: 2s, deny: p1-t1-0, for: 2s",
            "p1-t1-0 is already denied by faults.0.deny (p1)",
        ),
        (
            "at: 1s, deny: p1, for: 2s",
            "at: 2s, deny: p0, for: 2s, hosts: [h2]",
            "faults.1.deny: leaves no path from h2",
        ),
    ],
)
def test_two_faults_that_do_not_go_together(first: str, second: str, says: str) -> None:
    (found,) = mistakes(two(first, second))
    assert says in found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("at: 1s, deny: p1, for: 1s", "at: 2s, deny: p1, for: 1s"),
        ("at: 1s, deny: p1, for: 2s, hosts: [h0]", "at: 1s, deny: p1, for: 2s, hosts: [h1, h2]"),
        ("at: 1s, deny: p1, for: 1s", "at: 2s, deny: p0, for: 1s"),
        ("at: 1s, deny: p1, for: 2s, hosts: [h0]", "at: 1s, deny: p0, for: 2s, hosts: [h1]"),
    ],
)
def test_denials_after_each_other_or_of_other_hosts_are_fine(first: str, second: str) -> None:
    assert len(load_scenario_text(two(first, second)).faults) == 2


def test_what_is_denied_for_the_whole_run_cannot_be_denied_again() -> None:
    text = fault("at: 1s, deny: p1, for: 1s") + "endpoint: {denylist: [p1-t1-1]}\n"
    assert "faults.0.deny: p1 is already denied by endpoint.denylist.0 (p1-t1-1)" in mistakes(text)[0]


def test_a_path_that_no_host_of_the_workload_has_cannot_be_denied() -> None:
    text = HEAD.replace("steps: 20", "hosts: [h0, h1], steps: 20")
    assert "p0-t1-0: its hosts are all below one T0" in mistakes(text + "endpoint: {denylist: [p0-t1-0]}\n")[0]
    assert "h2 is not part" in mistakes(text + "endpoint: {denylist: [{path: p0, hosts: [h2]}]}\n")[0]
    assert load_scenario_text(text + "endpoint: {denylist: [p0]}\n").endpoint.denylist


def test_a_path_that_none_of_the_told_hosts_shares_with_a_peer_cannot_be_denied() -> None:
    """In a ring of six, the middle host of a group talks to its two neighbours only, which are below its own T0."""
    text = HEAD.replace("hosts_per_t0: 2", "hosts_per_t0: 3") + "faults:\n  - {at: 1s, deny: p0-t1-0, for: 1s, hosts: "
    (found,) = mistakes(text + "[h1]}\n")
    says = "8:4: faults.0.deny: no path of h1 leads over p0-t1-0: their peers in the workload are below the same T0"
    assert found.endswith(says.partition(": ")[2])
    assert load_scenario_text(text + "[h0, h1]}\n").occurrences
    (found,) = mistakes(HEAD + "endpoint: {denylist: [{path: p0-t1-0, hosts: [h1]}]}\n".replace("h1", "h9"))
    assert "there is no host 'h9'" in found
    flows = HEAD.partition("workload")[0] + "workload: [{write: {pairs: [h0->h1, h2->h0], bytes: 4MiB}}]\nfaults:\n"
    line = "  - {at: 100ms, deny: p0-t1-0, for: 100ms, hosts: [h1]}\n"
    (found,) = mistakes(flows + line)
    assert "no path of h1 leads over p0-t1-0" in found
    assert load_scenario_text(flows + line.replace("h1", "h2")).occurrences
