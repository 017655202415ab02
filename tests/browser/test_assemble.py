"""A page is one file that carries its data and cannot reach the network."""

from __future__ import annotations

from pathlib import Path

from mrc_testbed.testbed.pages.assemble import assemble
from tests.browser.conftest import OpenPage

READ = "JSON.parse(document.getElementById('data').textContent)"


def test_what_a_scenario_may_contain_cannot_break_the_page(tmp_path: Path, open_page: OpenPage) -> None:
    hostile = {"text": "</script><img src=x onerror=alert(1)><!-- & \u2028 'quoted'"}
    file = tmp_path / "page.html"
    file.write_text(assemble("base.html", {}, hostile), encoding="utf-8")
    page = open_page(file)
    assert page.evaluate(READ) == hostile
    assert page.locator("img").count() == 0


def test_the_network_is_out_of_reach(tmp_path: Path, open_page: OpenPage) -> None:
    file = tmp_path / "page.html"
    file.write_text(assemble("base.html", {}, None), encoding="utf-8")
    policy = open_page(file).locator("meta[http-equiv='Content-Security-Policy']").get_attribute("content") or ""
    assert "default-src 'none'" in policy
    assert "http" not in policy
