"""The live view as a room sees it, and as somebody with nothing but a keyboard uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from mrc_testbed.testbed.errors import ExitCode
from mrc_testbed.testbed.live.model import LiveModel
from mrc_testbed.testbed.report.outcome import RunOutcome
from mrc_testbed.testbed.scenario import load_scenario_text
from mrc_testbed.testbed.switching.options import FabricOptions
from mrc_testbed.testbed.web.server_process import ServerProcess
from tests.browser.conftest import OpenPage
from tests.live_stage import SMALL, TOKEN, LiveStage

SCENARIOS = Path(__file__).parents[2] / "scenarios"
LINK, SWITCH = "p0-t0-0:p0-t1-1", "p1-t1-0"
HOSTILE = "</script><img src=x onerror=alert(1)>&amp;\u2028\"'"


@pytest.fixture
def stage() -> Iterator[LiveStage]:
    made = LiveStage()
    yield made
    made.stop()


def opened(stage: LiveStage, open_page: OpenPage, **how: Any) -> Page:
    page = open_page(stage.address, **how)
    page.wait_for_selector("#drawing svg")
    page.wait_for_selector(".tile")
    return page


def link(page: Page, name: str = LINK) -> Any:
    return page.locator(f'#drawing [data-link="{name}"]')


def with_link(stage: LiveStage, load: tuple[float, float], state: str) -> dict[str, Any]:
    links = {each.name: {"load": [0, 0], "state": "up"} for each in stage.plan.links}
    return {**links, LINK: {"load": list(load), "state": state}}


def ticker(*lines: tuple[int, str, str]) -> list[dict[str, Any]]:
    return [{"n": n, "t_s": n * 1.0, "kind": kind, "text": text} for n, kind, text in lines]


def test_a_page_opened_in_mid_run_shows_it_all(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin(interactive=False)
    stage.frame(
        t_s=12.34,
        steps=[{"job": "", "done": 7, "of": 30, "last_s": 0.4567, "worst_s": 1.5}],
        links=with_link(stage, (0.5, 1.0), "up"),
        nodes={SWITCH: "broken"},
        evs={
            "0/t1-0": {"good": 4, "skip": 0, "bad": 0, "denied": 0},
            "0/t1-1": {"good": 2, "skip": 1, "bad": 1, "denied": 0},
        },
        hosts={"h0": {"ports": ["UP", "DOWN"], "goodput_bps": 3_000_000}, "h1": {"ports": [], "goodput_bps": 123_000}},
        ticker=ticker((1, "fault", "cut: link-down"), (2, "ev", "2 EVs retired")),
        fidelity={"light": "strained", "text": "timers late"},
    )
    page = opened(stage, open_page)
    expect(page.locator("#name")).to_have_text("small")
    expect(page.locator("#phase")).to_have_text("run")
    expect(page.locator("#clock")).to_have_text("12.3 s")
    expect(page.locator("#fidelity")).to_have_text("▲ timing strained")
    expect(page.locator("#steps")).to_contain_text("7 / 30 steps")
    expect(page.locator("#steps-last")).to_have_text("457 ms")
    expect(page.locator("#steps-worst")).to_have_text("1.50 s")
    expect(page.locator("#goodput-now")).to_have_text("3.12 Mb/s")
    expect(page.locator("#ticker li")).to_have_count(2)
    expect(page.locator("#ticker li").first).to_contain_text("2.00 s")
    expect(page.locator("#ticker li").first).to_contain_text("2 EVs retired")
    expect(page.locator(".tile").first).to_have_text("✓ 4")
    expect(page.locator(".tile.bad")).to_have_text("✖ 1 of 4")
    bad = "plane 0, T1 1: 2 good, 1 skipped, 1 retired, 0 denied"
    expect(page.locator(".tile.bad")).to_have_attribute("aria-label", bad)
    expect(page.locator(f'#drawing [data-node="{SWITCH}"]')).to_have_class("part broken")
    expect(page.locator('#drawing [data-node="h0"] .port.down')).to_have_count(1)
    assert link(page).get_attribute("stroke-width") == "6.0", "the busier of both ways"


def test_what_changes_is_seen_to_change(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    stage.frame(links=with_link(stage, (0, 0), "up"))
    page = opened(stage, open_page)
    for state in ("broken", "lossy", "slow"):
        stage.frame(links=with_link(stage, (0.2, 0), state))
        expect(link(page)).to_have_class(f"part {state}")
        assert (
            page.evaluate(f"getComputedStyle(document.querySelector('[data-link=\"{LINK}\"]')).strokeDasharray")
            != "none"
        )
    stage.frame(links=with_link(stage, (0, 0), "up"), ticker=ticker((1, "fault", "one")))
    expect(link(page)).to_have_class("part")
    stage.frame(ticker=ticker((1, "fault", "one"), (2, "heal", "two")))
    stage.frame(ticker=ticker((2, "heal", "two"), (3, "note", "three")))
    expect(page.locator("#ticker li")).to_have_count(3)
    said = [text.split(" s")[1] for text in page.locator("#ticker li").all_inner_texts()]
    assert [text.split()[-1] for text in said] == ["three", "two", "one"]


def test_flows_have_no_steps_and_local_paths_a_row(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    group = {"good": 2, "skip": 0, "bad": 0, "denied": 2}
    stage.frame(
        progress={"done": 3.2, "of": 20.0, "text": "3/20 s"}, evs={"1/local": group, "0/t1-1": group, "0/t1-0": group}
    )
    page = opened(stage, open_page)
    expect(page.locator("#steps")).to_contain_text("3 / 20 s")
    expect(page.locator("#steps-times")).to_be_hidden()
    assert page.locator("#tiles tr th:first-child").all_inner_texts() == ["EVs", "T1 0", "T1 1", "group"]
    expect(page.locator(".tile").first).to_have_text("⊘ 2 of 4")


def test_names_cannot_be_markup(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin(title=HOSTILE, about=HOSTILE, name=HOSTILE)
    stage.reply = lambda _: (False, HOSTILE)
    stage.frame(ticker=ticker((1, HOSTILE, HOSTILE)), fidelity={"light": "good", "text": HOSTILE})
    page = opened(stage, open_page)
    page.select_option("#target", LINK)
    page.get_by_role("button", name="Cut").click()
    expect(page.locator("#answer")).to_contain_text("onerror")
    stage.end(headline=HOSTILE, reason=HOSTILE, folder=HOSTILE)
    expect(page.locator("#verdict")).to_contain_text("onerror")
    assert page.locator("img").count() == 0


def part(page: Page) -> str:
    """The part of the drawing that has the focus."""
    name: str = page.evaluate("(document.activeElement.dataset.link || document.activeElement.dataset.node) ?? ''")
    return name


def walk(page: Page) -> set[str]:
    """Along each row of the drawing, from the first to the last; ends in the last but one, at its right end."""
    seen = set()
    for row in range(4):
        for arrow in ("ArrowLeft", "ArrowRight"):
            before = ""
            while part(page) != before:
                before = part(page)
                seen.add(before)
                page.keyboard.press(arrow)
        if row < 3:
            page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    return seen


def test_a_link_is_cut_with_nothing_but_the_keyboard(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    stage.frame()
    page = opened(stage, open_page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('svg') !== null"), "the drawing is the first thing"
    assert walk(page) >= {*stage.plan.link_by_name, *stage.plan.switch_by_name}, "arrows go everywhere"
    page.keyboard.press("ArrowUp")
    while part(page) != LINK:
        page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(f"link {LINK}, up, 0 %")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    for _ in range(16):
        if page.evaluate("document.activeElement.dataset.action || ''") == "cut":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_have_text("✔ did cut")
    assert stage.asked == [{"do": "cut", "target": LINK, "for_s": 3}]


def test_every_part_can_be_chosen_from_the_list_and_by_mouse(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    stage.frame(links=with_link(stage, (0.25, 0.5), "slow"))
    page = opened(stage, open_page)
    names = [*stage.plan.switch_by_name, *stage.plan.link_by_name]
    options = page.locator("#target option")
    assert sorted(options.evaluate_all("all => all.map((one) => one.value).filter(Boolean)")) == sorted(names)
    page.select_option("#target", LINK)
    expect(page.locator("#target-is")).to_have_text("slow, 25 % away from the hosts, 50 % towards them")
    expect(link(page)).to_have_class("part slow selected")
    page.locator(f'#drawing [data-node="{SWITCH}"]').click()
    expect(page.locator("#target")).to_have_value(SWITCH)
    assert page.locator("#buttons button").all_inner_texts() == ["Reboot", "Silence", "Mend"]


def test_what_is_asked_has_its_length_and_share(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    stage.frame()
    page = opened(stage, open_page)
    page.select_option("#target", LINK)
    page.get_by_label("for").fill("1.5")
    page.get_by_label("loss").fill("12.5")
    page.get_by_role("button", name="Make lossy").click()
    expect(page.locator("#answer")).to_have_text("✔ did lossy")
    page.get_by_label("until mended").check()
    page.get_by_role("button", name="Cut").click()
    expect(page.locator("#answer")).to_have_text("✔ did cut")
    page.get_by_role("button", name="Mend").click()
    expect(page.locator("#answer")).to_have_text("✔ did mend")
    assert stage.asked == [
        {"do": "lossy", "target": LINK, "for_s": 1.5, "share": 0.125},
        {"do": "cut", "target": LINK, "for_s": None},
        {"do": "mend", "target": LINK},
    ]


def test_buttons_that_do_not_go_say_why(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin(interactive=False)
    stage.frame()
    page = opened(stage, open_page)
    page.select_option("#target", LINK)
    for button in page.locator("#buttons button").all():
        expect(button).to_be_disabled()
    expect(page.locator("#buttons")).to_contain_text("start the run with --interactive to break things from here")
    stage.begin(interactive=True, program=False)
    stage.frame(phase="build")
    expect(page.locator("#buttons")).to_contain_text("possible while the workload runs")
    stage.frame()
    expect(page.locator("#buttons")).to_contain_text("choose a target")
    page.select_option("#target", LINK)
    expect(page.get_by_role("button", name="Cut")).to_be_enabled()
    expect(page.get_by_role("button", name="Make lossy")).to_be_disabled()
    expect(page.locator("#buttons")).to_contain_text("Make lossy: needs the port program, and this fabric runs plain")


def test_without_the_token_a_page_shows_all_and_breaks_nothing(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    stage.frame()
    page = open_page(stage.url)
    page.wait_for_selector("#drawing svg")
    page.select_option("#target", LINK)
    expect(page.get_by_role("button", name="Cut")).to_be_disabled()
    expect(page.locator("#buttons")).to_contain_text("open the address that the command printed")
    page.evaluate(f"location.hash = '{TOKEN}'")
    page.get_by_role("button", name="Cut").click()
    expect(page.locator("#answer")).to_have_text("✔ did cut")
    assert [one["do"] for one in stage.asked] == ["cut"]


def test_the_printed_address_breaks_things_and_the_token_is_in_no_request(browser: Browser) -> None:
    server, scenario = ServerProcess(None, interactive=True), load_scenario_text(SMALL)
    server.begin(scenario, FabricOptions("dummy", "netem", "port program"))
    (screen,) = server.screens()
    screen.draw({**LiveModel(scenario, scenario.plan()).frame(0), "phase": "run"})
    context = browser.new_context()
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(f"{request.url} {request.headers.get('referer')}"))
    page.goto(server.address)
    page.select_option("#target", LINK)
    page.get_by_role("button", name="Cut").click()
    request = server._channel.receive()
    assert request
    assert request.content["request"]["do"] == "cut"
    token = server.address.partition("#")[2]
    assert len(token) == 32
    assert not [line for line in asked if token in line and "#" not in line]
    context.close()
    server.close()


def test_the_verdict_and_its_report(stage: LiveStage, open_page: OpenPage, tmp_path: Path) -> None:
    stage.begin()
    stage.frame()
    page = opened(stage, open_page)
    expect(page.locator("#verdict")).to_be_hidden()
    (tmp_path / "report.html").write_text("<!doctype html><title>r</title><link rel=icon href='data:,'><p>the report")
    with (tmp_path / "report.html").open("rb") as file:
        stage.end(verdict="fail", reason="a QP failed", report=file.fileno())
    expect(page.locator("#verdict")).to_contain_text("fail")
    expect(page.locator("#verdict")).to_contain_text("a QP failed")
    expect(page.locator("#verdict")).to_have_class("fail")
    with page.context.expect_page() as other:
        page.get_by_role("link", name="report").click()
    expect(other.value.locator("p")).to_have_text("the report")
    stage.begin(run=2, title="small #2")
    expect(page.locator("#name")).to_have_text("small #2")
    expect(page.locator("#verdict")).to_be_hidden()
    stage.frame()
    stage.end(run=2)
    stage.hang_up()
    expect(page.locator("#connection")).to_have_text("mrc-testbed has ended")
    expect(page.locator("#verdict")).to_contain_text("pass")


def test_a_command_that_is_killed(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    stage.frame()
    page = opened(stage, open_page)
    stage.hang_up()
    expect(page.locator("#connection")).to_have_text("mrc-testbed has ended without a verdict")


@pytest.mark.nightly
def test_a_server_that_goes_away_and_comes_back(browser: Browser) -> None:
    """A browser says on its console that it cannot connect, so this page is not held to silence."""
    scenario, options = load_scenario_text(SMALL), FabricOptions("dummy", "netem", "port program")
    first = ServerProcess(None, interactive=True)
    first.begin(scenario, options)
    context = browser.new_context()
    page = context.new_page()
    page.goto(first.url)
    expect(page.locator("#name")).to_have_text("small")
    first._process.kill()
    expect(page.locator("#connection")).to_have_text("no connection, trying again")
    first.close()
    port = int(first.url.rstrip("/").rpartition(":")[2])
    second = ServerProcess(port, interactive=True)
    second.title = "small again"
    second.begin(scenario, options)
    expect(page.locator("#name")).to_have_text("small again", timeout=15_000)
    expect(page.locator("#connection")).to_be_hidden()
    second.end(RunOutcome(ExitCode.PASS, 1.0))
    second.close()
    expect(page.locator("#connection")).to_have_text("mrc-testbed has ended")
    third = ServerProcess(port, interactive=True)
    third.title = "the next command"
    third.begin(scenario, options)
    expect(page.locator("#name")).to_have_text("the next command", timeout=15_000)
    expect(page.locator("#verdict")).to_be_hidden()
    context.close()
    third.close()


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1920, 1080)])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.nightly(keep=1)
def test_a_projector_shows_it_without_scrolling(open_page: OpenPage, width: int, height: int, dark: bool) -> None:
    """The quickstart at its end, when there is most to show."""
    stage = LiveStage(text=(SCENARIOS / "quickstart.yaml").read_text(encoding="utf-8"))
    stage.begin(interactive=False)
    lines = ticker(*((n, "ev", "8 EVs of p1-t1-3 retired by 5 hosts") for n in range(1, 51)))
    stage.frame(steps=[{"job": "", "done": 7, "of": 30, "last_s": 0.4567, "worst_s": 1.5}], ticker=lines)
    reason = "recovery_time.p100 <= 10 rtt during t1-reboot: observed 12 rtt, and a few more words about it"
    stage.end(reason=reason, verdict="fail", folder="/home/somebody/mrc-testbed/results/20261121T205138Z-quickstart")
    page = opened(stage, open_page, width=width, height=height, dark=dark)
    expect(page.locator("#verdict")).to_be_visible()
    size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    assert page.evaluate(size) == [width, height]
    for each in ("#steps", "#goodput", "#evs", "#hand", "#drawing svg", "#answer", "#legend", "#verdict"):
        box = page.locator(each).bounding_box()
        assert box
        assert box["y"] + box["height"] <= height
        assert box["height"] > 10
    assert page.evaluate("document.querySelector('#evs').scrollHeight <= document.querySelector('#evs').clientHeight")
    stage.stop()


def test_a_narrow_window_scrolls_down_only(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    stage.frame()
    page = opened(stage, open_page, width=400, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_a_screen_reader_is_told_of_events_and_parts(stage: LiveStage, open_page: OpenPage) -> None:
    stage.begin()
    stage.frame(ticker=ticker((1, "fault", "cut")))
    page = opened(stage, open_page)
    expect(page.get_by_role("log")).to_have_attribute("aria-live", "polite")
    expect(page.get_by_role("log").get_by_role("img", name="broken")).to_be_visible()
    expect(page.get_by_role("button", name=f"switch {SWITCH}")).to_be_visible()
    expect(page.get_by_role("button", name=f"link {LINK}")).to_be_visible()
