"""The browser client and a collector that wants to hang or fill it, in Chromium and in Firefox."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.service.browser.javascript import built_client, missing, run_node
from tests.service.browser.marionette import Firefox, firefox_path
from tests.service.browser.running import ABOUT, Asking, asking
from tests.service.hostile import ATTACKS, WRONG, Hostile, hostile
from tests.service.test_firefox import LABELS, answer, pages, state_of

from veil import GRR, Survey

SCRIPT = Path(__file__).parent / "browser" / "hostile.mjs"
SOON = "const wait = AbortSignal.timeout.bind(AbortSignal); AbortSignal.timeout = (time) => wait(time / 40);"
"""The client's deadline of 20 s is half a second in these pages."""

GETS = {
    **dict.fromkeys(("slow-head", "endless-body", "slow-100-Continue", "elsewhere", "cut-off"), "offline"),
    **dict.fromkeys(("deep", "many-values"), "survey-form"),
}
POSTS = dict.fromkeys(("slow-body", "long-chunk-extensions", "deep", "page"), "queued")


@contextmanager
def attacked(folder: Path) -> Iterator[tuple[Asking, Hostile, str]]:
    """A collector, who stands in front of it, and the page that asks there."""
    assert {name.replace("-", " ") for name in (*GETS, *POSTS)} <= {*ATTACKS, *WRONG}
    built_client()
    with (
        asking(folder, Survey(GRR(epsilon=1.0, domain=LABELS)), **ABOUT) as asked,
        hostile(int(asked.address.rpartition(":")[2])) as attacker,
        pages(asked, attacker.url, 1, SOON) as (page,),
    ):
        yield asked, attacker, page


def check_the_report(asked: Asking, attacker: Hostile) -> None:
    """It was sent again and again as the same bytes, counted once, and nothing followed a redirect."""
    posts = [body for request, body in attacker.requests if request.startswith("POST")]
    assert len(posts) > len(POSTS)
    assert len(set(posts)) == 1
    assert asked.reports() == 1
    assert not any("elsewhere" in request for request, _ in attacker.requests)


def test_chromium_ends_every_exchange(tmp_path: Path) -> None:
    browser = os.environ.get("VEIL_CHROMIUM") or shutil.which("chromium")
    if browser is None:
        missing("Chromium is missing (Debian: apt-get install chromium), so it was not tested")
    with attacked(tmp_path / "collector") as (asked, attacker, page):
        profile = str(tmp_path / "profile")
        job = {"address": attacker.url, "page": page, "chromium": browser, "profile": profile}
        seen = json.loads(run_node(SCRIPT, json.dumps(job | {"gets": list(GETS), "posts": list(POSTS)})))
        assert seen == {"gets": GETS, "opened": "ready", "posts": POSTS, "last": "delivered"}
        check_the_report(asked, attacker)


def test_firefox_ends_every_exchange(tmp_path: Path) -> None:
    binary = firefox_path()
    if binary is None:
        missing("Firefox is missing (Debian: apt-get install firefox-esr), so it was not tested")
    ends = {"ready", *GETS.values()}
    with attacked(tmp_path / "collector") as (asked, attacker, page), Firefox(binary, tmp_path / "profile") as firefox:
        for name, state in {**GETS, "none": "ready"}.items():
            attacker.command(f"GET/{name}")
            firefox.ask("WebDriver:Navigate", url=page)
            assert (name, state_of(firefox, *ends)) == (name, state)
        for name, state in {**POSTS, "none": "delivered"}.items():
            attacker.command(f"POST/{name}")
            assert (name, answer(firefox, "tea")) == (name, state)
        firefox.quit()
        check_the_report(asked, attacker)
