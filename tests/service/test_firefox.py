"""The example page in Firefox, with a real collector: what `test_browser.py` shows of Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.patience import until
from tests.service.browser.javascript import ROOT, built_client, missing
from tests.service.browser.marionette import Firefox, firefox_path
from tests.service.browser.running import ABOUT, Asking, asking, old_surveys
from tests.service.middleman import Middleman, between, shortened

from veil import GRR, Survey

LABELS = ["tea", "coffee", "water"]
STATE = "return document.querySelector('#status')?.dataset.state"
CHOOSE = """
const wanted = [...document.querySelectorAll("label")].find((label) => label.textContent.trim() === arguments[0]);
wanted.querySelector("input").click();
document.querySelector("#status").dataset.state = "asked";
document.querySelector(arguments[1]).click();
"""
ENDS = ("delivered", "earlier", "queued", "refused", "budget", "storage", "failed")


@contextmanager
def pages(asked: Asking, address: str, people: int, script: str = "") -> Iterator[list[str]]:
    """The example page on so many origins: each has a ledger of its own, and so is another person.

    `script` runs in the page before the client is used.
    """
    settings = {"collector": address, "key": asked.key, "survey": {"name": ABOUT["name"]}, "budget": 1}
    written = "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in settings.items()) + script

    class Page(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/settings.js":
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript")
            self.end_headers()
            self.wfile.write(written.encode())

        def translate_path(self, path: str) -> str:
            if path in ("/veil.js", "/statements.js"):
                return str(ROOT / "clients" / "js" / "dist" / path[1:])
            return super().translate_path(path)

        def log_message(self, *_: Any) -> None:
            pass

    handler = partial(Page, directory=str(ROOT / "examples" / "survey-page"))
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler) for _ in range(people)]
    threads = [Thread(target=server.serve_forever, args=(0.02,), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield [f"http://127.0.0.1:{server.server_address[1]}/" for server in servers]
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()


def state_of(firefox: Firefox, *wanted: str) -> str:
    """The page's state, once it is one of these."""

    def look() -> str:
        found = str(firefox.run(STATE))
        return found if found in wanted else ""

    return until(look, lambda: f"the page stays {firefox.run(STATE)}")


def visit(firefox: Firefox, page: str) -> None:
    firefox.ask("WebDriver:Navigate", url=page)
    assert state_of(firefox, "ready", "failed") == "ready"


def answer(firefox: Firefox, label: str, button: str = "button") -> str:
    firefox.run(CHOOSE, label, button)
    return state_of(firefox, *ENDS)


def test_people_answer_the_example_page_in_firefox(tmp_path: Path) -> None:
    binary = firefox_path()
    if binary is None:
        missing("Firefox is missing (Debian: apt-get install firefox-esr), so it was not tested")
    built_client()
    survey = Survey(GRR(epsilon=1.0, domain=LABELS))
    with (
        asking(tmp_path / "collector", survey, **ABOUT) as asked,
        between(int(asked.address.rpartition(":")[2])) as middleman,
        pages(asked, middleman.url, 4) as (first, second, third, fourth),
    ):
        with Firefox(binary, tmp_path / "profile") as firefox:
            one_person(firefox, first, asked, middleman)
            without_a_network(firefox, second, asked, middleman)
            two_tabs(firefox, third, asked)
            killed_while_sending(firefox, fourth, asked, middleman)
        with Firefox(binary, tmp_path / "profile") as firefox:
            visit(firefox, fourth)  # it was paid for, and arrives now
            until(lambda: asked.reports() == 4)
            assert answer(firefox, "tea") == "earlier"
            assert answer(firefox, "tea", "#change") == "budget"
            visit(firefox, first)  # the ledger outlives the browser
            assert answer(firefox, "water") == "earlier"
            assert answer(firefox, "water", "#change") == "budget"
            middleman.alter = shortened
            firefox.ask("WebDriver:Navigate", url=first)
            assert state_of(firefox, "ready", "survey-signature") == "survey-signature"
            for shown, state in old_surveys(tmp_path / "collector", survey):
                middleman.alter = lambda _, shown=shown: json.dumps(shown).encode()  # type: ignore[misc]
                firefox.ask("WebDriver:Navigate", url=first)
                assert state_of(firefox, "ready", "survey-rollback", "survey-outdated") == state
            firefox.quit()
        assert asked.reports() == 4


def one_person(firefox: Firefox, page: str, asked: Asking, middleman: Middleman) -> None:
    """An answer arrives; after it another cannot be told from the same; a changed one is refused by the ledger."""
    visit(firefox, page)
    assert firefox.run("return [...document.querySelectorAll('label')].map((l) => l.textContent.trim())") == LABELS
    said = "return ['question', 'wave'].map((id) => document.getElementById(id).textContent)"
    assert firefox.run(said) == [ABOUT["texts"]["en"], "drinks, wave 1"]
    told = firefox.run("return [...document.querySelectorAll('#statements li')].map((l) => l.textContent)")
    assert (len(told), "at most 2.72 times as likely" in told[0]) == (6, True)
    assert told[2] == "The time of your report is kept to 1 hour."
    assert answer(firefox, "coffee") == "delivered"
    assert answer(firefox, "coffee") == "earlier"
    assert answer(firefox, "tea") == "earlier"
    assert answer(firefox, "tea", "#change") == "budget"
    assert firefox.run("return document.querySelector('#left').textContent") == "0"
    assert len(middleman.posts) == 1
    assert asked.reports() == 1


def without_a_network(firefox: Firefox, page: str, asked: Asking, middleman: Middleman) -> None:
    """The report waits, and is delivered once by the page itself when the collector is back."""
    visit(firefox, page)
    middleman.posts.clear()
    middleman.down = True
    assert answer(firefox, "tea") == "queued"
    assert asked.reports() == 1
    middleman.down = False
    until(lambda: asked.reports() == 2)
    assert len(set(middleman.posts)) == 1


def two_tabs(firefox: Firefox, page: str, asked: Asking) -> None:
    """They answer at the same time: one budget, one report."""
    tabs = [firefox.tab(), firefox.tab()]
    for tab in tabs:
        firefox.switch(tab)
        visit(firefox, page)
    for tab, label in zip(tabs, LABELS, strict=False):
        firefox.switch(tab)
        firefox.run(CHOOSE, label, "button")
    ends = []
    for tab in tabs:
        firefox.switch(tab)
        ends.append(state_of(firefox, *ENDS))
    assert sorted(ends) in (["budget", "delivered"], ["delivered", "earlier"])  # before, or after, it arrived
    assert asked.reports() == 3


def killed_while_sending(firefox: Firefox, page: str, asked: Asking, middleman: Middleman) -> None:
    """The browser dies at the moment when the report leaves the page."""
    visit(firefox, page)
    middleman.on_post[:] = [firefox.kill]
    firefox.run(CHOOSE, "water", "button")
    until(lambda: firefox.process.poll() is not None)
    assert asked.reports() == 3
