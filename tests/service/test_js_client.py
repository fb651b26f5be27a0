"""The browser client's own tests, in node: vectors, ledger, queue, signatures and size; and what an answer costs."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path

from tests.patience import LIMIT
from tests.service.browser.javascript import ROOT, built_client, run_node

from veil import Survey
from veil.device.statements import best_text
from veil.privacy import decimal_text

COSTS = """
import { readFileSync } from "node:fs";
import { Survey } from "%s/survey.js";
const tasks = JSON.parse(readFileSync(process.argv[1]));
console.log(JSON.stringify(await Promise.all(tasks.map(async (task) => (await Survey.read(task)).cost))));
"""


TEXTS = """
import { readFileSync } from "node:fs";
import { bestText } from "%s/about.js";
const cases = JSON.parse(readFileSync(process.argv[1]));
console.log(JSON.stringify(cases.map(([texts, languages]) => bestText(new Map(Object.entries(texts)), languages))));
"""


def test_its_own_tests_pass() -> None:
    client = built_client()
    ran = subprocess.run(["npm", "test"], cwd=client, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.search(r"^# pass (\d+)$", ran.stdout, re.MULTILINE)
    assert passed
    assert int(passed[1]) >= 60


def test_an_answer_costs_the_same_in_python(tmp_path: Path) -> None:
    tasks = [
        vector["task"]
        for path in sorted((ROOT / "vectors").glob("*.json"))
        if not path.name.startswith("bad_")
        for vector in json.loads(path.read_text(encoding="ascii")).get("surveys", [])
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks), encoding="ascii")
    script = COSTS % (built_client() / "build")
    costs = json.loads(run_node("--input-type=module", "--eval", script, tmp_path / "tasks.json"))
    assert len(tasks) > 50
    assert costs == [decimal_text(Survey.from_json(json.dumps(task)).guarantee.epsilon) for task in tasks]


def test_a_person_is_asked_in_the_same_language_as_in_python(tmp_path: Path) -> None:
    draw = random.Random(7)
    tags = ["de", "DE-at", "de-CH", "de-CH-1996", "den", "en", "en-GB", "fr", "pt-BR", "zh-Hant-TW", ""]
    cases = [
        ({tag: tag for tag in draw.sample(tags[:-1], draw.randrange(5))}, draw.choices(tags, k=draw.randrange(4)))
        for _ in range(500)
    ]
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="ascii")
    script = TEXTS % (built_client() / "build")
    found = json.loads(run_node("--input-type=module", "--eval", script, tmp_path / "cases.json"))
    assert found == [best_text(texts, languages) for texts, languages in cases]
    assert len(set(found)) > 8
