"""Stories of transfers over a sound network."""

from tests.sim.simnet import Net, T, pattern


def test_a_clean_transfer_arrives_whole_and_completes_once():
    net = Net()
    flow = net.join()
    data = pattern(300 * 4096 + 77)
    flow.write(data, offset=11, wr_id=42)
    net.run(lambda: net.completed(), within=20 * T)
    assert flow.region()[11 : 11 + len(data)] == data
    assert [event.wr_id for event in net.completed()] == [42]
    counters = net.counters()
    assert counters["data_sent"] == 301
    assert counters["retransmitted"] == 0
    assert counters["evs_retired"] == 0
