"""Tests of a cluster's behaviour under faults. Run them with `sudo .venv/bin/python -m pytest docs/examples`."""


def test_training_survives_a_switch_reboot(mrc_testbed):
    result = mrc_testbed.run("one-t1-dies.yaml", seed=3)
    assert result.passed, result.reason
    result.check("step_time.p100 <= 2 x clean.median during reboot")
    assert result.metric("recovery.p100 during reboot", unit="rtt") < 8
    assert result.metric("packets_lost during reboot") > 0, "the reboot hit nothing"


def test_nothing_is_lost_without_faults(mrc_testbed):
    result = mrc_testbed.run("one-t1-dies.yaml", "faults=[]", "workload.0.train.steps=6")
    assert result.passed, result.reason
    assert result.metric("packets_lost") == 0
