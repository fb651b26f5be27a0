"""Metrics of the installation, the alerts and the board that read them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.patience import until
from tests.service.harness import FRAMED, SURVEY, Collector, framed, running, values
from tests.support.commands import CliRunner

import veil
from veil.cli.main import app
from veil.collector.monitoring.metrics import _HELP, Metrics, last_backup, measure, note_backup
from veil.collector.problems import noted
from veil.collector.store.blocks import BlockStore
from veil.collector.store.schema import latest
from veil.collector.surveys.answers import ReaderThreads
from veil.errors import LimitError, ServiceError

TOOL = shutil.which("promtool")
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES, BOARD = DEPLOY / "prometheus" / "veil.rules.yml", DEPLOY / "grafana" / "veil.json"


def text_of(collector: Collector, token: dict[str, str]) -> str:
    answer = httpx.get(f"{collector.url}/metrics", headers=token)
    assert answer.status_code == 200
    return answer.text


def measured(collector: Collector, token: dict[str, str]) -> str:
    """The metrics, once the installation has been looked at."""
    text = text_of(collector, token)
    return text if "veil_last_backup_timestamp_seconds " in text else ""


def value(text: str, name: str) -> float:
    (found,) = re.findall(rf"^{re.escape(name)}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE)
    return float(found)


def test_a_collector_knows_its_version_its_space_and_its_last_backup(tmp_path: Path) -> None:
    with running(tmp_path / "collector") as collector:
        token = collector.token("metrics:read")
        text = until(lambda: measured(collector, token))
        assert f'veil_build_info{{version="{veil.__version__}",python="3.' in text
        assert f'database="sqlite",schema="{latest()}"}} 1\n' in text
        assert value(text, "veil_last_backup_timestamp_seconds") == 0
        assert 0 < value(text, "veil_disk_free_bytes") < value(text, "veil_disk_bytes")
        assert value(text, "veil_database_bytes") >= (collector.folder / "collector.sqlite3").stat().st_size > 0
        before = int(time.time())
        done = CliRunner().invoke(app, ["backup", str(tmp_path / "b"), "--folder", str(collector.folder)])
        assert done.exit_code == 0, done.output
        collector.stop()
        collector.start()  # it looks once a minute, and when it starts
        text = until(lambda: measured(collector, token))
        assert before <= value(text, "veil_last_backup_timestamp_seconds") <= time.time()


def test_both_databases_say_how_large_they_are_and_remember_a_backup(
    make: Callable[[], BlockStore], tmp_path: Path
) -> None:
    store, metrics = make(), Metrics()
    assert last_backup(store) == 0
    note_backup(store)
    measure(metrics, store, tmp_path, "sqlite")
    assert metrics.value("veil_database_bytes") > 4096
    assert abs(metrics.value("veil_last_backup_timestamp_seconds") - time.time()) < 3600
    store.set_fact("last-backup", "soon")
    assert last_backup(store) == 0


def test_metrics_text_has_integer_counters_and_cumulative_buckets() -> None:
    metrics = Metrics()
    metrics.add("veil_reports_total", 12_345_678_901, outcome="stored")
    metrics.set("veil_queue_reports", 3)
    for _ in range(2):
        metrics.observe("veil_commit_seconds", 0.004)
    lines = metrics.text().splitlines()
    assert 'veil_reports_total{outcome="stored"} 12345678901' in lines
    assert "veil_queue_reports 3" in lines
    assert 'veil_commit_seconds_bucket{le="0.005"} 2' in lines
    assert 'veil_commit_seconds_bucket{le="0.0025"} 0' in lines
    assert 'veil_commit_seconds_bucket{le="+Inf"} 2' in lines
    assert "veil_commit_seconds_sum 0.008000" in lines
    assert "veil_commit_seconds_count 2" in lines


@pytest.mark.parametrize(
    ("settings", "post", "limit"),
    [
        ({"VEIL_MAX_BODY_BYTES": "1024"}, {"content": b"x" * 2048}, "max_body_bytes"),
        ({"VEIL_MAX_REPORTS": "2"}, {"content": framed(SURVEY, values(3))}, "max_reports"),
        ({"VEIL_HEAD_BYTES": "1024"}, {"headers": {**FRAMED, "X-Long": "x" * 2048}}, "head_bytes"),
    ],
)
def test_a_limit_that_was_met_is_counted(
    tmp_path: Path, settings: dict[str, str], post: dict[str, Any], limit: str
) -> None:
    with running(tmp_path, **settings) as collector:
        path, token = collector.open_survey(), collector.token("metrics:read")
        refused = httpx.post(f"{collector.url}{path}/reports", **{"headers": FRAMED, **post})
        assert refused.status_code in (413, 431)
        assert value(text_of(collector, token), f'veil_limits_reached_total{{limit="{limit}"}}') == 1


def test_batches_beyond_the_limit_of_an_address_are_counted(tmp_path: Path) -> None:
    name = 'veil_limits_reached_total{limit="requests_per_minute"}'
    with running(tmp_path, VEIL_REQUESTS_PER_MINUTE="20", VEIL_LIMITS_AT_PROXY="false") as collector:
        path, token = collector.open_survey(), collector.token("metrics:read")
        for size, status in ((21, 401), (15, 200), (15, 429)):
            sent = framed(SURVEY, values(size))
            assert httpx.post(f"{collector.url}{path}/reports", content=sent, headers=FRAMED).status_code == status
        assert value(text_of(collector, token), name) == 2


def test_limits_of_threads_and_queries_are_counted() -> None:
    metrics = Metrics()
    pool = ReaderThreads("answer", threads=1, waiting=0)
    pool._places.acquire()
    with pytest.raises(ServiceError) as refused:
        asyncio.run(pool.run(len, "four"))
    noted(metrics, refused.value)
    noted(metrics, LimitError("this needs about 9 MB", "at most 1 MB"))
    pool.stop()
    assert metrics.value("veil_limits_reached_total", limit="threads-answer") == 1
    assert metrics.value("veil_limits_reached_total", limit="query") == 1


def families(expression: str) -> set[str]:
    """The families of metrics that an expression reads; `up` is Prometheus's own."""
    names = set(re.findall(r"\bveil_\w+", re.sub(r'"[^"]*"', '""', expression)))
    return {re.sub(r"_(bucket|sum|count)$", "", name) if name not in _HELP else name for name in names}


def expressions() -> list[str]:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    found = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    found += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return found + [one["query"]["query"] for one in board["templating"]["list"] if isinstance(one["query"], dict)]


def test_alerts_and_panels_read_metrics_that_exist(tmp_path: Path) -> None:
    with running(tmp_path) as collector:
        text = text_of(collector, collector.token("metrics:read"))
    shown = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    assert families('histogram_quantile(0.9, veil_request_seconds_bucket{a="veil_x"})') == {"veil_request_seconds"}
    for expression in expressions():
        read = families(expression)
        assert read <= shown, expression
        assert read or expression.startswith("up{"), expression
        for code in re.findall(r'(\w+)="(?!\$)([^"]+)"', expression):
            assert code in {
                ("job", "veil"),
                ("code", "internal"),
                ("route", "POST /v1/surveys/{task}/reports"),
            }, "labels that the collector sets"
    everything = set().union(*map(families, expressions()))
    assert shown - everything <= {"veil_rounds_total"}, "what nobody looks at need not be there"


def test_labels_that_expressions_read_are_those_of_the_collector() -> None:
    """Labels in `by` and in legends: a misspelt one gives an empty panel, and no error."""
    labels = {"instance", "le", "outcome", "route", "status", "code", "reason", "limit", "version", "task"}
    for expression in expressions():
        for listed in re.findall(r"\bby \(([^)]*)\)", expression):
            assert {label.strip() for label in listed.split(",")} <= labels, expression


def test_panels_stand_beside_each_other() -> None:
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    cells: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        covered = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not covered & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        cells |= covered
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_promtool_accepts_the_rules_and_their_tests_pass() -> None:
    if TOOL is None:
        message = "promtool is not installed (Debian: prometheus): the alerts were NOT evaluated"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    for command in (["check", "rules", RULES.name], ["test", "rules", "veil.tests.yml"]):
        done = subprocess.run([TOOL, *command], cwd=RULES.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_explained() -> None:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    page = (DEPLOY.parent / "docs" / "collector" / "deployment.md").read_text(encoding="utf-8")
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"]
        assert f"`{rule['alert']}`" in page
