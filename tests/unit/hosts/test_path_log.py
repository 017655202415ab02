"""What snapshots tell of paths."""

from __future__ import annotations

from mrc_testbed.hosts.mrc import path_log
from mrc_testbed.hosts.mrc.path_log import MOST, Counts, PathLog


class Endpoint:
    """By peer and path: packets sent and lost."""

    def __init__(self, paths: dict[int, int]) -> None:
        self.sent = {(peer, number): 0 for peer, count in paths.items() for number in range(count)}
        self.lost = dict.fromkeys(self.sent, 0)

    def path_counts(self, peer: int) -> Counts:
        return [
            ((number // 4, number % 4), self.sent[peer, number], self.lost[peer, number])
            for each, number in self.sent
            if each == peer
        ]


def test_it_tells_what_was_sent_and_lost_since_the_last_time() -> None:
    endpoint = Endpoint({4: 8, 7: 8})
    log = PathLog(endpoint, {4: "h4", 7: "h7"})
    assert log.take() == {"sent_by_path": {}, "lost_by_path": {}}
    endpoint.sent[4, 5] = 3
    endpoint.sent[7, 0], endpoint.lost[7, 0] = 2, 1
    expected = {"h4": [0, 0, 0, 0, 0, 3, 0, 0], "h7": [2, 0, 0, 0, 0, 0, 0, 0]}
    assert log.take() == {"sent_by_path": expected, "lost_by_path": {"h7": {"0/0": 1}}}
    endpoint.sent[4, 5] = 7
    endpoint.lost[4, 6] = 2
    last = {"sent_by_path": {"h4": [0, 0, 0, 0, 0, 4, 0, 0]}, "lost_by_path": {"h4": {"1/2": 2}}}
    assert log.take() == last
    assert log.take() == {"sent_by_path": {}, "lost_by_path": {}}


def test_a_host_with_many_paths_tells_of_its_peers_in_turn() -> None:
    """Nothing is told twice, and nothing is left out."""
    peers = {number: f"h{number}" for number in range(1, 12)}
    endpoint = Endpoint(dict.fromkeys(peers, MOST // 4))
    log = PathLog(endpoint, peers)
    told: dict[str, int] = {}
    rounds = []
    for _ in range(3):
        for place in endpoint.sent:
            endpoint.sent[place] += 1
        sent = log.take()["sent_by_path"]
        assert isinstance(sent, dict)
        rounds.append(list(sent))
        for name, counts in sent.items():
            told[name] = told.get(name, 0) + counts[0]
    assert rounds == [["h1", "h2", "h3", "h4"], ["h5", "h6", "h7", "h8"], ["h9", "h10", "h11", "h1"]]
    assert told == {name: number // 4 + 1 if name != "h1" else 3 for number, name in enumerate(peers.values())}


def test_a_peer_with_more_paths_than_fit_is_told_of_alone() -> None:
    endpoint = Endpoint({1: MOST + 4, 2: 4})
    log = PathLog(endpoint, {1: "h1", 2: "h2"})
    for place in endpoint.sent:
        endpoint.sent[place] = 1
    sent = log.take()["sent_by_path"]
    assert isinstance(sent, dict)
    assert list(sent) == ["h1"]
    assert list(log.take()["sent_by_path"]) == ["h2"]  # type: ignore[call-overload]


def test_a_host_without_peers_tells_nothing() -> None:
    assert PathLog(Endpoint({}), {}).take() == {"sent_by_path": {}, "lost_by_path": {}}
    assert path_log.MOST == 256
