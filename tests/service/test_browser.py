"""A real browser, the example page and a real collector: answers arrive, budgets hold, and nothing is sent twice."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.service.browser.javascript import built_client, missing, run_node
from tests.service.browser.running import ABOUT, asking, old_surveys

from veil import GRR, Survey

SCRIPT = Path(__file__).parent / "browser" / "survey.mjs"
LABELS = ["tea", "coffee", "water"]


def test_people_answer_the_example_page(tmp_path: Path) -> None:
    """Four people, one meddler, one browser that is killed: one test, because browsers are slow to start."""
    browser = os.environ.get("VEIL_CHROMIUM") or shutil.which("chromium")
    if browser is None:
        missing("Chromium is missing (Debian: apt-get install chromium), so no real browser was tested")
    built_client()
    survey = Survey(GRR(epsilon=1.0, domain=LABELS))
    with asking(tmp_path / "collector", survey, **ABOUT) as collector:
        job = vars(collector) | {"name": ABOUT["name"], "chromium": browser, "profile": str(tmp_path / "profiles")}
        old = old_surveys(tmp_path / "collector", survey)
        job["shown"] = [shown for shown, _ in old]
        seen = json.loads(run_node(SCRIPT, json.dumps(job)))
    estimates = {name: seen[name].pop("estimate") for name in ("before", "afterFirst", "afterChanged")}
    wanted = {
        # a person answers, and the report arrives
        "labels": LABELS,
        "question": "What did you drink this morning?",
        "wave": "drinks, wave 1",
        "cost": "1",
        "first": "delivered",
        "before": {"reports": 0},
        "afterFirst": {"reports": 1},
        # once it is delivered, the device cannot tell another answer; a changed one is refused by the ledger
        "same": "earlier",
        "other": "earlier",
        "changed": "budget",
        "left": "0",
        "afterChanged": {"reports": 1},
        # the ledger outlives the browser
        "restarted": "earlier",
        "restartedChanged": "budget",
        "restartedPosts": 0,
        # without a network the report waits, and is delivered once
        "asked": "Was haben Sie getrunken?",  # by a browser that speaks German
        "offline": "queued",
        "whileOffline": 1,
        "delivered": 1,
        "afterOffline": 2,
        # two tabs spend one budget
        "afterTabs": 3,
        # an altered survey is not asked
        "altered": "survey-signature",
        # nor an earlier wave, nor a statement that was not renewed
        "old": [state for _, state in old],
        # a browser killed while it sends has paid, and delivers later
        "whileKilled": 3,
        "afterKill": 4,
        "leftAfterKill": "0",
        "otherAfterKill": "earlier",
        "changedAfterKill": "budget",
        # and the page never stumbled
        "problems": [],
    }
    assert sorted(seen["tabs"]) in (["budget", "delivered"], ["delivered", "earlier"])  # before, or after, it arrived
    assert {name: seen[name] for name in wanted} == wanted
    assert len(seen["posts"]) == 1
    assert estimates["before"] is None  # no answer without reports; then the estimate moves, and stays
    assert sum(estimates["afterFirst"]) == pytest.approx(1)
    assert estimates["afterChanged"] == estimates["afterFirst"]
