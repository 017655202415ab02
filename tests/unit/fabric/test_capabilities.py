from __future__ import annotations

import io
from dataclasses import replace

import pytest

from mrc_testbed.hosts import batches, compiled, huge_pages
from mrc_testbed.testbed.errors import ExitCode, FabricError, MissingCapability
from mrc_testbed.testbed.fabric import capabilities, port_program, trials
from mrc_testbed.testbed.fabric.capabilities import (
    KERNEL_DELAY,
    PORT_PROGRAM,
    TUNNEL_SOURCE,
    Capability,
    choose,
    require,
    require_port_program,
)
from mrc_testbed.testbed.report import doctor
from mrc_testbed.testbed.report.console import PatientConsole
from mrc_testbed.topos.families.clos2 import clos2_shape

SHAPE = clos2_shape(2, 2, 2, 1, 25_000_000, 20_000_000)
NEEDED = Capability("HTB shaper", True, True, "no link rates", "install the extra modules")
DUMMY = Capability("dummy device", True, False, "an ifb is used instead", "modules")
IFB = Capability("ifb device", True, False, "needed only without dummy", "modules")
NETEM = Capability("netem delay", True, False, "T is made by the endpoints", "load sch_netem [extra]")
QUEUE = Capability(KERNEL_DELAY, True, False, "no tcp", "a kernel that queues")
ALL = [NEEDED, DUMMY, IFB, NETEM]


def without(*names: str, detail: str = "") -> list[Capability]:
    return [replace(each, present=False, detail=detail) if each.name in names else each for each in ALL]


def test_a_whole_machine_is_enough() -> None:
    require(ALL)


def test_optional_parts_may_be_missing() -> None:
    require(without("dummy device", "ifb device", "netem delay"))


def test_a_needed_part_must_be_there() -> None:
    with pytest.raises(MissingCapability) as told:
        require(without("HTB shaper"))
    assert str(told.value) == "HTB shaper is missing (no link rates). Fix: install the extra modules"
    assert told.value.fix == "install the extra modules"
    assert told.value.exit_code == ExitCode.MISSING == 4


def test_the_first_missing_part_is_told_with_what_the_kernel_said() -> None:
    later = replace(NEEDED, name="later", present=False)
    with pytest.raises(MissingCapability, match=r"^HTB shaper is missing \(no link rates\): Unknown qdisc\. Fix: "):
        require([*without("HTB shaper", detail="Unknown qdisc"), later])


@pytest.mark.parametrize(
    ("missing", "sid_device"),
    [([], "dummy"), (["dummy device"], "ifb"), (["ifb device"], "dummy")],
)
def test_dummy_is_better_than_ifb(missing: list[str], sid_device: str) -> None:
    assert choose(without(*missing), SHAPE).sid_device == sid_device


def test_without_dummy_and_ifb_there_is_no_place_for_usid_routes() -> None:
    with pytest.raises(MissingCapability) as told:
        choose(without("dummy device", "ifb device"), SHAPE)
    assert told.value.what == "neither dummy nor ifb devices can be made"
    assert "extra modules" in told.value.fix
    assert told.value.exit_code == 4


def test_netem_makes_the_delay_where_it_is() -> None:
    assert choose(ALL, SHAPE).delay == "netem"
    assert choose(without("netem delay"), SHAPE).delay == "endpoint"


def test_what_the_kernel_speaks_is_delayed_by_nfqueue_and_else_by_netem() -> None:
    assert choose([*ALL, QUEUE], SHAPE, "transport: tcp").delay == "nfqueue"
    assert choose([*ALL, replace(QUEUE, present=False)], SHAPE, "transport: tcp").delay == "netem"


def test_without_either_tcp_is_refused_with_the_fix() -> None:
    lacking = replace(QUEUE, present=False, detail="Protocol not supported")
    told = "transport: tcp needs a delay for packets of the kernel, and this machine has none: Protocol not supported"
    with pytest.raises(MissingCapability) as refused:
        choose([*without("netem delay"), lacking], SHAPE, "transport: tcp")
    assert (refused.value.what, refused.value.fix) == (told, "a kernel that queues")
    with pytest.raises(MissingCapability, match="run with sudo"):
        choose(without("netem delay"), SHAPE, "transport: tcp")


@pytest.mark.parametrize("missing", [[], ["netem delay"]])
def test_without_a_round_trip_nobody_delays(missing: list[str]) -> None:
    assert choose(without(*missing), replace(SHAPE, rtt_ns=0)).delay == "none"
    assert choose(without(*missing), replace(SHAPE, rtt_ns=0), "transport: tcp").delay == "none"


def test_names_that_choose_asks_for_are_names_that_are_probed() -> None:
    probed = {test.name for test in trials.KERNEL_TESTS}
    assert probed >= {DUMMY.name, IFB.name, NETEM.name}


def test_where_there_can_be_no_sandbox_that_is_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise MissingCapability("user namespaces are closed", "open them")

    monkeypatch.setattr("shutil.which", lambda tool: f"/sbin/{tool}")
    monkeypatch.setattr(trials, "call_isolated", refuse)
    with pytest.raises(
        MissingCapability,
        match=r"^sandbox of namespaces is missing \(no fabric\): user namespaces are closed\. Fix: open them$",
    ):
        require(capabilities.probe())


@pytest.mark.usefixtures("no_loading")
@pytest.mark.parametrize(
    ("rootless", "told"),
    [
        (True, ("the kernel takes eBPF programs from root of the machine alone", "run with sudo")),
        (False, ("Operation not permitted", trials._BPF_KERNEL)),
    ],
)
def test_without_root_sudo_gives_the_port_program(
    monkeypatch: pytest.MonkeyPatch, rootless: bool, told: tuple[str, str]
) -> None:
    monkeypatch.setattr(trials, "is_rootless", lambda: rootless)
    program = trials._port_program()
    assert (program.detail, program.fix) == told


def test_where_there_is_no_linux_nothing_else_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "LINUX", replace(capabilities.LINUX, present=False))
    monkeypatch.setattr(trials, "tried", lambda: pytest.fail("tried a fabric without Linux"))
    with pytest.raises(
        MissingCapability, match=r"^Linux is missing .* Fix: use a Linux machine; `run --virtual` needs none$"
    ):
        require(capabilities.probe())


def test_a_missing_tool_comes_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "is_rootless", lambda: False)
    monkeypatch.setattr("shutil.which", lambda tool: None if tool == "tc" else f"/sbin/{tool}")
    monkeypatch.setattr(trials, "call_isolated", lambda *_: pytest.fail("tried the kernel without tc"))
    with pytest.raises(MissingCapability, match=r"^tc is missing \(no queues\)\. Fix: .*apt-get install iproute2$"):
        require(capabilities.probe())


@pytest.fixture
def no_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests run outside a sandbox: nothing may be mounted or loaded."""

    def refuse(*_: object) -> None:
        raise FabricError("fabric", "load the port program", "Operation not permitted")

    monkeypatch.setattr(port_program, "load", refuse)


@pytest.mark.usefixtures("no_loading")
def test_what_the_kernel_answered_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "is_rootless", lambda: False)
    monkeypatch.setattr("shutil.which", lambda tool: f"/sbin/{tool}")
    tried = []

    def refuse_netem(commands: list[str], expect: str) -> str:
        tried.append((commands, expect))
        return "no netem here" if "netem" in commands[-1] else ""

    monkeypatch.setattr(trials, "_try", refuse_netem)
    monkeypatch.setattr(trials, "call_isolated", lambda function, _: function())
    found = {each.name: each for each in capabilities.probe()}
    assert not found["netem delay"].present
    assert found["netem delay"].detail == "no netem here"
    assert found["veth"].present
    assert len(tried) == len(trials.KERNEL_TESTS)
    program = found[PORT_PROGRAM]
    assert (program.present, program.detail) == (False, "Operation not permitted")
    require(found.values())


def test_hosts_are_told_their_source_address_where_the_kernel_allows_it() -> None:
    told = Capability(TUNNEL_SOURCE, True, False, "slower", "run with sudo")
    assert choose([*ALL, told], SHAPE).tunnel_source
    assert not choose([*ALL, replace(told, present=False)], SHAPE).tunnel_source


def test_the_port_program_is_chosen_where_it_runs() -> None:
    program = Capability(PORT_PROGRAM, True, False, "no marks", "make setup")
    assert choose([*ALL, program], SHAPE).switch_ports == "port program"
    assert choose(ALL, SHAPE).switch_ports == "plain shaper"


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (
            [Capability(PORT_PROGRAM, False, False, "no marks", "make setup", "clang is missing")],
            "trimming needs the port program, which is missing: clang is missing. Fix: make setup",
        ),
        ([], "trimming needs the port program, which only root can try. Fix: run with sudo"),
    ],
    ids=["absent", "not tried"],
)
def test_what_needs_the_port_program_is_refused_with_the_fix(found: list[Capability], told: str) -> None:
    with pytest.raises(MissingCapability) as refusal:
        require_port_program(found, "trimming")
    assert str(refusal.value) == told
    require_port_program([Capability(PORT_PROGRAM, True, False, "", "")], "trimming")


@pytest.mark.usefixtures("no_loading")
@pytest.mark.parametrize(("refused", "kind"), [("type dummy", "ifb"), ("type ifb", "dummy")])
def test_routes_are_tried_on_the_device_that_there_is(monkeypatch: pytest.MonkeyPatch, refused: str, kind: str) -> None:
    scripts = []

    def refuse(commands: list[str], _expect: str) -> str:
        scripts.append(commands)
        return "refused" if refused in commands[-1] else ""

    monkeypatch.setattr(trials, "_try", refuse)
    trials.probe_kernel()
    with_routes = [commands for commands in scripts if "ip -6 route show" in commands]
    assert len(with_routes) == 3
    assert all(commands[0] == f"ip link add name sid0 type {kind}" for commands in with_routes)


def shown(monkeypatch: pytest.MonkeyPatch, found: list[Capability]) -> tuple[int, str]:
    out = io.StringIO()
    monkeypatch.setattr(doctor, "probe", lambda: found)
    monkeypatch.setattr(doctor, "open_console", lambda: PatientConsole(file=out, width=200, highlight=False))
    return doctor.show_doctor(), out.getvalue()


def test_doctor_of_a_whole_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = shown(monkeypatch, ALL)
    assert status == 0
    present, carries = text.splitlines()[: len(ALL)], text.splitlines()[len(ALL) :]
    assert present == [f"present  {each.name}" for each in ALL]
    assert carries.pop(0).split()[:2] == ["core", compiled.in_use()]
    assert carries.pop(0).split()[:2] == ["sockets", batches.in_use()]
    assert carries.pop(0).split()[:2] == ["pages", huge_pages.described().split()[0]]
    assert carries.pop(0).split()[0] == "cpus"
    assert carries[0] == "carries"
    assert [line.split()[0] for line in carries[1:-1]] == ["mrc:", "roce:", "tcp:", "mptcp:", "mrc-hashed:"]
    assert "17,000 data packets/s of the standard training at any time, 1.03 to 2.26 CPUs (two cores, " in carries[1]
    assert carries[-1] == "Ready."


def test_doctor_tells_what_is_lost_and_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = shown(monkeypatch, without("netem delay", detail="Specified qdisc kind is unknown."))
    assert status == 0
    assert text.splitlines()[3:6] == [
        "absent   netem delay",
        "         without it: T is made by the endpoints (Specified qdisc kind is unknown.)",
        "         fix: load sch_netem [extra]",
    ]
    assert text.splitlines()[-1] == "Ready. 1 optional parts are missing; see above what is lost."


def test_doctor_of_a_machine_that_cannot_build_a_fabric(monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = shown(monkeypatch, without("HTB shaper", "netem delay"))
    assert status == 4
    assert text.splitlines()[0] == "missing  HTB shaper"
    assert text.splitlines()[2] == "         fix: install the extra modules"
    assert text.splitlines()[-1] == "No fabric can be built here: HTB shaper missing."
