"""Sweeps on a real scheduler with real workers, all on loopback; what cells do is a stub (tests/sweep_stub.py)."""

from __future__ import annotations

import os
import random
import signal
import threading
from itertools import pairwise

import pytest

from tests.sweep_stage import Stage, is_there, results, wait_until

pytest.importorskip("distributed", reason="pip install '.[sweep]'")


def two_workers(stage: Stage) -> None:
    stage.scheduler()
    stage.worker("a")
    stage.worker("b")


@pytest.mark.nightly
def test_every_cell_is_run_once_and_never_two_at_once_on_a_worker(stage: Stage) -> None:
    two_workers(stage)
    folder = stage.plan(8)
    done = stage.sweep_run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(folder) == {seed: ["pass"] for seed in range(1, 9)}
    begun, ended = stage.lines(), {line["pid"]: line["at"] for line in stage.lines("end")}
    for worker in "ab":
        mine = [line for line in begun if line["worker"] == worker]
        assert mine
        assert all(ended[one["pid"]] <= other["at"] for one, other in pairwise(mine))


@pytest.mark.nightly
def test_what_a_machine_spoiled_goes_to_another_one_and_a_fail_never_again(stage: Stage) -> None:
    stage.plays(s1="spoilt-on:a", s2="spoilt-on:b", s3="fail")
    two_workers(stage)
    folder = stage.plan(4)
    done = stage.sweep_run(folder)
    assert done.returncode == 1
    found = results(folder)
    assert found[3] == ["fail"]
    assert found[4] == ["pass"]
    assert {tuple(found[1]), tuple(found[2])} <= {("pass",), ("inconclusive", "pass")}
    assert len(stage.lines()) == sum(map(len, found.values()))


@pytest.mark.nightly
def test_a_cell_that_every_machine_spoils_stays_inconclusive(stage: Stage) -> None:
    stage.plays(s1="spoilt-on")
    two_workers(stage)
    folder = stage.plan(1)
    done = stage.sweep_run(folder, "--retry-inconclusive", "1")
    assert done.returncode == 3
    assert results(folder) == {1: ["inconclusive"] * 2}
    assert {line["worker"] for line in stage.lines()} == {"a", "b"}


@pytest.mark.nightly
def test_the_run_of_a_killed_worker_dies_with_it_and_its_cell_is_done_elsewhere(stage: Stage) -> None:
    stage.scheduler()
    victim = stage.worker("a")
    stage.env["STUB_S"] = "2"
    folder = stage.plan(2)
    stage.worker("b")
    running = stage.begin_run(folder)
    (hit,) = wait_until(lambda: [line for line in stage.lines() if line["worker"] == "a"])
    os.kill(victim.pid, signal.SIGKILL)
    wait_until(lambda: not is_there(hit["pid"]) and not is_there(hit["child"]), seconds=2)
    assert running.wait(60) == 0
    assert results(folder) == {1: ["pass"], 2: ["pass"]}


@pytest.mark.nightly
def test_a_cell_that_waits_for_a_worker_that_is_gone_goes_elsewhere(stage: Stage) -> None:
    """Spoilt by a, it may go to b alone; b dies in the middle of it."""
    stage.plays(s1="spoilt-on:a")
    stage.scheduler()
    stage.worker("a")
    folder = stage.plan(1)
    soon = stage.env.get("STUB_S", "0.3")
    stage.env["STUB_S"] = "60"
    other = stage.worker("b")
    running = stage.begin_run(folder)
    wait_until(lambda: [line for line in stage.lines() if line["worker"] == "b"])
    # c is there when b dies: with a alone the cell would be spoilt until its tries are used up.
    stage.env["STUB_S"] = soon
    stage.worker("c")
    other.kill()
    assert running.wait(60) == 0
    assert results(folder)[1][-1] == "pass"


@pytest.mark.nightly
def test_a_sweep_that_was_killed_goes_on_with_what_is_missing(stage: Stage) -> None:
    two_workers(stage)
    folder = stage.plan(6)
    running = stage.begin_run(folder)
    wait_until(lambda: len(list(folder.glob("cells/*/1/cell.json"))) >= 2)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    there = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*/1/cell.json")}
    done = stage.sweep_run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(folder) == {seed: ["pass"] for seed in range(1, 7)}
    assert {path: path.stat().st_mtime_ns for path in there} == there


@pytest.mark.nightly
def test_ctrl_c_ends_the_runs_and_leaves_a_folder_to_go_on_with(stage: Stage) -> None:
    stage.plays(s3="slow", s4="slow")
    two_workers(stage)
    folder = stage.plan(4)
    running = stage.begin_run(folder)
    slow = wait_until(lambda: [line for line in stage.lines() if line["seed"] >= 3])
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    assert not any(is_there(line["pid"]) or is_there(line["child"]) for line in slow)
    assert results(folder) == {1: ["pass"], 2: ["pass"], 3: [], 4: []}


@pytest.mark.nightly
def test_a_cell_that_kills_its_workers_is_inconclusive_and_the_others_are_done(stage: Stage) -> None:
    stage.plays(s2="kill-worker")
    stage.scheduler(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1")
    stage.worker("a", nanny=True)
    folder = stage.plan(3)
    done = stage.sweep_run(folder, "--retry-inconclusive", "0")
    assert done.returncode == 3, done.stdout + done.stderr
    assert results(folder) == {1: ["pass"], 2: ["inconclusive"], 3: ["pass"]}
    assert "its worker died" in done.stdout


@pytest.mark.nightly
def test_a_scheduler_that_goes_is_told_with_status_4(stage: Stage) -> None:
    stage.plays(s1="slow")
    scheduler = stage.scheduler()
    stage.worker("a")
    folder = stage.plan(1)
    running = stage.begin_run(folder)
    wait_until(stage.lines)
    scheduler.kill()
    assert running.wait(60) == 4
    assert "is gone" in (stage.place / f"process-{len(stage.started) - 1}.log").read_text()


@pytest.mark.nightly
def test_no_scheduler_is_told(stage: Stage) -> None:
    folder = stage.plan(1)
    done = stage.call("sweep", "run", str(folder), "--on", "tcp://127.0.0.1:9")
    assert done.returncode == 4
    assert "no scheduler at tcp://127.0.0.1:9" in done.stderr
    assert "dask scheduler" in done.stderr


@pytest.mark.nightly
def test_a_worker_that_would_run_several_fabrics_is_refused(stage: Stage) -> None:
    stage.scheduler()
    stage.worker("a", resources="")
    done = stage.sweep_run(stage.plan(1))
    assert done.returncode == 2
    assert "was started without --resources fabric=1: it would run several fabrics at once" in done.stderr


@pytest.mark.nightly
def test_a_cell_that_no_worker_carries_is_told_before_anything_runs(stage: Stage) -> None:
    stage.scheduler()
    stage.worker("a", resources="fabric=1 cpus=0.01")
    done = stage.sweep_run(stage.plan(1))
    assert done.returncode == 2
    assert "no worker carries more than 0.01" in done.stderr
    assert not stage.lines()


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")
def test_a_scheduler_that_takes_orders_from_other_machines_is_refused(stage: Stage) -> None:
    """As it is started without --host. The address that the client dials is that of loopback."""
    stage.alone()
    stage.scheduler(host="0.0.0.0")
    stage.address = "tcp://127.0.0.1:" + stage.address.rpartition(":")[2]
    stage.worker("a")
    folder = stage.plan(1)
    refused = stage.sweep_run(folder)
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert f"the scheduler at {stage.address} listens on tcp://0.0.0.0:" in line
    assert "without TLS, and who reaches it is root on the workers: start it with --host 127.0.0.1 --no-d" in line
    assert "listens on tcp://0.0.0.0:" in stage.call("hunt", "hunts/ports", *stage.on).stderr
    assert stage.sweep_run(folder, "--insecure").returncode == 0


@pytest.mark.nightly
@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")
def test_a_worker_that_takes_orders_from_other_machines_is_refused(stage: Stage) -> None:
    """As it is started without --host."""
    stage.alone()
    stage.scheduler()
    stage.worker("b", host="0.0.0.0")
    refused = stage.sweep_run(stage.plan(1))
    assert refused.returncode == 2
    assert "listens on tcp://0.0.0.0:" in refused.stderr
    assert not [line for line in stage.lines() if line["worker"] == "b"]


OTHER = "import mrc_testbed.testbed.sweep.worker as w; w.code_version = lambda: {'version': '0.0.9', 'commit': None}\n"


@pytest.mark.nightly
def test_a_worker_of_another_version_is_named_and_refused(stage: Stage) -> None:
    (stage.place / "other.py").write_text(OTHER)
    stage.scheduler()
    stage.worker("a", "--preload", str(stage.place / "other.py"))
    done = stage.sweep_run(stage.plan(1))
    assert done.returncode == 2
    assert "has mrc-testbed 0.0.9" in done.stderr


@pytest.mark.nightly
def test_workers_without_any_are_told(stage: Stage) -> None:
    stage.scheduler()
    done = stage.sweep_run(stage.plan(1))
    assert done.returncode == 4
    assert "has no workers" in done.stderr


@pytest.mark.nightly
def test_tls_with_keys_of_our_own_and_nothing_without_them(stage: Stage) -> None:
    certs = stage.place / "certs"
    assert stage.call("sweep", "keys", str(certs)).returncode == 0
    pair = str(certs / "key.pem")
    stage.tls = ("--tls-ca-file", str(certs / "ca.pem"), "--tls-cert", pair, "--tls-key", pair)
    stage.scheduler("tls")
    stage.worker("a", "--protocol", "tls")
    folder = stage.plan(2)
    done = stage.sweep_run(folder, "--certs", str(certs))
    assert done.returncode == 0, done.stdout + done.stderr
    assert stage.call("sweep", "keys", str(stage.place / "others")).returncode == 0
    strange = stage.sweep_run(folder, "--certs", str(stage.place / "others"))
    assert strange.returncode == 4
    plain = stage.call("sweep", "run", str(folder), "--on", stage.address.replace("tls", "tcp"))
    assert plain.returncode == 4


@pytest.mark.nightly
def test_several_cells_of_virtual_time_share_a_worker(stage: Stage) -> None:
    stage.env["STUB_S"] = "2"
    stage.scheduler()
    stage.worker("a", "--nthreads", "2", resources="")
    folder = stage.plan(2, "--virtual")
    done = stage.sweep_run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    begun, ended = stage.lines(), stage.lines("end")
    assert max(line["at"] for line in begun) < min(line["at"] for line in ended)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_hundred_cells_have_one_believed_result_each_whatever_is_killed(stage: Stage) -> None:
    stage.scheduler(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="20")
    for name in "ab":
        stage.worker(name, nanny=True)
    folder = stage.plan(100)
    chance, over = random.Random(7), threading.Event()

    def kill() -> None:
        while not over.wait(chance.uniform(1, 3)):
            going = [line for line in stage.lines()[-4:] if is_there(line["pid"]) and is_there(line["above"])]
            if going:
                os.kill(chance.choice(going)["above"], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        done = stage.sweep_run(folder)
    finally:
        over.set()
        killer.join()
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(folder) == {seed: ["pass"] for seed in range(1, 101)}
    assert len(stage.lines()) > 100  # some were begun again
