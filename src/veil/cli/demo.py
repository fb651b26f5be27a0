"""`veil demo`: plan, randomize, collect and estimate with simulated people.

Online, a collector on SQLite and two crowds of devices are processes of their own and talk over HTTP only. Offline,
every step leaves its file in one folder, so that each can be tried again by hand. The people are the same every time;
only their reports are random.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veil.cli.crowd import call
from veil.cli.input import load_tallies
from veil.cli.output import Document, plain_table, plural, shell_command
from veil.cli.results import OutputOptions, show_choice
from veil.cli.values import RandomizedRows, ValueInput
from veil.comparison import TrueValues
from veil.domain import Categories
from veil.engines import FileCollection, Watch
from veil.entropy import SeededForExperiments
from veil.errors import StoreError
from veil.planning import Wishes, plan
from veil.results.units import Unit
from veil.study import StudyRun
from veil.tools.filesystem import write_atomically
from veil.tools.json_documents import parse_json
from veil.wire.tallies import encode_tally

if TYPE_CHECKING:
    from veil.cli.output import Screen

QUESTION = "Which app do you open first in the morning?"
# An answer tells more than it seems to (a clinic, a dating app, a job search): that is why it needs a veil.
APPS = tuple(
    " ".join(app.split())
    for app in """
    messages, weather, mail, news, camera, music, calendar, maps, podcasts, photos, alarm clock, bank, fitness, games,
    notes, train times, shopping, recipes, video calls, e-books, radio, dating, job search, period tracker, meditation,
    sleep log, food delivery, crossword, language lessons, stock prices, football scores, bus tickets, taxi, calculator,
    clinic visits, prayer times, blood sugar, baby monitor, school portal, flat hunting, auctions, crypto wallet,
    betting, karaoke, chess, star map, bird songs, tide table, parking, translator, drawing, drum machine, gardening,
    dream diary, genealogy, knitting, home heating, scanner, compass, ski slopes, mushroom guide, sudoku, astrology,
    pedometer
    """.replace("\n", " ").split(",")
)
EPSILON = 1.0
TOP = 12
_UNIT = 1_000_000
_POPULATION_SEED = 64
_HALVES = ("1", "2")
_CROWDS = 2
_SCOPES = ("surveys:write", "surveys:read", "answers:read")


def walk(folder: Path, people: int, seed: int | None, screen: Screen, watch: Watch) -> Document:
    """Plan, randomize on two groups of devices, tally each, merge, estimate, draw; every step leaves its file."""
    folder.mkdir(parents=True, exist_ok=True)
    screen.print(f"[bold]{QUESTION}[/]\n{people:,} simulated people, {len(APPS)} possible answers.", markup=True)
    step(screen, 1, "plan", "compare the frequency oracles and choose one")
    choice = plan("histogram", Wishes(EPSILON, Categories(APPS), people))
    study, survey = choice.study, choice.study.survey
    show_choice(choice, screen)
    screen.print(
        f"  Privacy guarantee: for any two answers, the probabilities of a report differ by at most the factor"
        f" e^{survey.guarantee.epsilon:g} = {float(survey.guarantee.ratio or 0):.3f}."
    )
    write_atomically(folder / "study.json", study.to_bytes())

    step(screen, 2, "randomize", "each device turns its answer into a randomized report")
    held = made_up(people)
    counted: list[tuple[Path, Path]] = []
    for half, some in zip(_HALVES, np.array_split(held, len(_HALVES)), strict=True):
        values, reports = folder / f"people-{half}.csv", folder / f"reports-{half}.arrow"
        write_atomically(values, "\n".join(["app", *(APPS[i] for i in some), ""]).encode())
        # seeds differ: the same seed for both groups would give them the same noise
        own = None if seed is None else 2 * seed + len(counted)
        done = RandomizedRows(study, survey, ValueInput.at(values), watch, seed=own)
        done.write(reports)
        screen.print(
            f"  {values.name} -> {reports.name}: {done.people:,} reports of {plural(survey.layout.size, 'byte')}"
        )
        counted.append((reports, folder / f"tally-{half}.bin"))

    step(screen, 3, "tally and merge", "the collector counts the reports and adds the tallies")
    tally = folder / "tally.bin"
    for reports, part in counted:
        write_atomically(part, encode_tally(FileCollection(survey, [reports], watch).tally()))
    merged = load_tallies(survey, [part for _, part in counted])
    write_atomically(tally, encode_tally(merged))
    screen.print(f"  {' + '.join(part.name for _, part in counted)} -> {tally.name}: {merged.people:,} reports")

    step(screen, 4, "estimate", "the estimated shares, and the true shares, which the collector never receives")
    run, known = StudyRun(study), TrueValues(survey, held.astype(np.uint64))
    run.answer(merged)
    found = run.result
    assert found is not None
    drawn = find_spec("matplotlib") is not None  # an extra: the demo works without it
    shown = OutputOptions(None, folder / "estimate.svg" if drawn else None, 0.95, TOP).present(found, screen, (), known)
    truth = known.truth(found) or []
    covered = sum(row.low <= share <= row.high for row, share in zip(found, truth, strict=True))
    screen.print(f"{covered} of {len(APPS)} intervals contain the true share (95 % expected).")
    again = shell_command("veil", "estimate", folder / "study.json", tally, "--top", "20")
    screen.print()
    screen.print_line(f"All files are in {folder}/. Next: {again}")
    return {
        "folder": str(folder),
        "task": survey.task,
        "people": merged.people,
        "plan": choice.to_json(),
        "estimate": shown,
        "truth": dict(zip(APPS, truth, strict=True)),
        "covered": covered,
        "plot": shown["plot"],
    }


def walk_online(people: int, screen: Screen, watch: Watch) -> Document:
    """Plan, serve, open, report, answer; in a temporary folder that is gone afterwards."""
    screen.print(f"[bold]{QUESTION}[/]\n{people:,} simulated people, {len(APPS)} possible answers.", markup=True)
    step(screen, 1, "plan", "choose the frequency oracle")
    choice = plan("histogram", Wishes(EPSILON, Categories(APPS), people))
    survey, start = choice.study.survey, time.monotonic()
    screen.print(f"[bold green]*[/] {choice.why}", markup=True)

    step(screen, 2, "serve", "start a collector on SQLite, then sign and open the survey")
    with tempfile.TemporaryDirectory(prefix="veil-demo-") as folder, _serving(Path(folder)) as port:
        token = _token(folder)
        asked = json.dumps({"survey": parse_json(choice.study.to_bytes())}).encode()
        path = f"/v1/surveys/{survey.task}"
        _ask(port, "POST", "/v1/surveys", token, asked)
        _ask(port, "POST", f"{path}/open", token)
        url = f"http://127.0.0.1:{port}{path}"
        screen.print_line(f"  survey: {url}")

        step(screen, 3, "report", "each device checks the guarantee, charges its ledger, and sends a randomized report")
        held = made_up(people)
        with watch("reporting", people) as advance:
            _report(url, held, advance)
        state = _ask(port, "GET", f"{path}/state", token)
        seconds = time.monotonic() - start
        reports, size = plural(state["reports"], "report"), plural(survey.layout.size, "byte")
        screen.print(f"  {reports} of {size} received over HTTP, each stored on disk before it was acknowledged")

        step(screen, 4, "estimate", "the estimated shares, and the true shares, which the collector never receives")
        answer = _ask(port, "GET", f"{path}/answer", token)
    return _shown(screen, answer, held, seconds)


def made_up(people: int) -> NDArray[np.int64]:
    """Return each simulated person's app as an index. The k-th app has a share proportional to 1 / (k + 2)."""
    ends = np.cumsum([_UNIT // (rank + 3) for rank in range(len(APPS))])
    drawn = SeededForExperiments(_POPULATION_SEED).below(int(ends[-1]), people).astype(np.int64)
    return np.searchsorted(ends, drawn, side="right")


def step(screen: Screen, number: int, name: str, what: str) -> None:
    """A heading of the demo."""
    screen.print(f"\n[bold blue]{number} {name}[/]  [dim]{what}[/]", markup=True)


def beside_truth(
    screen: Screen, rows: Sequence[Document], held: NDArray[np.int64], seconds: float
) -> tuple[dict[str, float], int]:
    """Show the largest estimates beside the truth; the true shares, and how many of all intervals cover them."""
    truth, share = np.bincount(held, minlength=len(APPS)) / len(held), Unit("share")
    known = {app: float(part) for app, part in zip(APPS, truth, strict=True)}
    cells = [
        (
            row["value"],
            share.text(row["frequency"]),
            share.interval(row["low"], row["high"]),
            share.text(known[row["value"]]),
        )
        for row in sorted(rows, key=lambda row: -row["frequency"])[:TOP]
    ]
    screen.print(plain_table(("value", "share", "95 % interval", "truth"), cells))
    covered = sum(row["low"] <= known[row["value"]] <= row["high"] for row in rows)
    screen.print(f"{covered} of {len(APPS)} intervals contain the true share (95 % expected). It took {seconds:.0f} s.")
    return known, covered


def _shown(screen: Screen, answer: Document, held: Any, seconds: float) -> Document:
    known, covered = beside_truth(screen, answer["rows"], held, seconds)
    screen.print("Next: run veil demo --offline (the same steps with files), or read docs/collector/service.md.")
    return {"task": answer["task"], "people": answer["people"], "answer": answer, "truth": known, "covered": covered}


@contextlib.contextmanager
def _serving(folder: Path) -> Iterator[int]:
    """A `veil serve` for the length of a block, and its port."""
    command = [sys.executable, "-m", "veil.cli", "serve", "--port", "0", "--folder", str(folder)]
    # no setting of a collector that is set up here may reach this one: neither a variable nor a veil.toml
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VEIL_")}
    environment["VEIL_REQUESTS_PER_MINUTE"] = "0"  # all devices of the demo have one address
    process = subprocess.Popen(  # noqa: S603  # our own command
        command, stderr=subprocess.PIPE, cwd=folder, env=environment
    )
    assert process.stderr is not None
    drain = threading.Thread(target=process.stderr.read, daemon=True)  # a full pipe would hold the collector up
    try:
        port = None
        for line in process.stderr:
            event = json.loads(line)
            port = event.get("port", port)
            if event["event"] == "started":
                break
        if port is None:
            raise StoreError("the collector did not start")
        drain.start()
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)
        if drain.ident is not None:
            drain.join(timeout=5)
        process.stderr.close()


def _token(folder: str) -> str:
    from veil.collector.keys_and_tokens import issue_token
    from veil.collector.service import open_store
    from veil.collector.settings import CollectorSettings

    store = open_store(CollectorSettings(folder=folder))
    _, secret = issue_token(store, _SCOPES, note="demo")
    store.close()
    return secret


def _ask(port: int, method: str, path: str, token: str, body: bytes | None = None) -> Document:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {token}"} | ({} if body is None else {"Content_Type": "application/json"})
    status, answer = call(connection, method, path, body, **headers)
    connection.close()
    document: Document = json.loads(answer)
    if status >= 400:
        raise StoreError(f"the collector refused: {document['error']['message']}")
    return document


def _report(url: str, held: Sequence[int] | Any, advance: Any) -> None:
    """Crowds of devices, each in a process of its own."""
    crowds = []
    for some in np.array_split(held, _CROWDS):
        command = [sys.executable, "-m", "veil.cli.crowd", url]
        crowd = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # our own too
        assert crowd.stdin is not None
        crowd.stdin.write(json.dumps([APPS[i] for i in some]).encode())
        crowd.stdin.close()
        crowds.append(crowd)
    readers = [threading.Thread(target=_follow, args=(crowd, advance)) for crowd in crowds]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    if any(crowd.wait() for crowd in crowds):
        raise StoreError("a crowd of devices gave up")


def _follow(crowd: subprocess.Popen[bytes], advance: Any) -> None:
    assert crowd.stdout is not None
    with crowd.stdout as lines:
        for line in lines:
            advance(int(line))
