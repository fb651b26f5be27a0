"""Follow data through the code, and count the functions and files that it passes.

    python tests/support/house/walks.py [CHECKOUT] [-v]

The last line is a JSON object. A script without imports of other tests, so that it can walk through another checkout.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

_SKIPPED = {"<module>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>"}


class Walk:
    """The functions of veil that are called within a `with` block, in their order."""

    def __init__(self, title: str, home: Path) -> None:
        self.title, self.functions = title, dict[tuple[str, str], None]()
        self.calls = self.changes = 0
        self._home, self._last = f"{home}/", ""

    @property
    def files(self) -> int:
        return len({file for file, _ in self.functions})

    def __enter__(self) -> Walk:
        sys.setprofile(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _call(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(self._home) or code.co_name in _SKIPPED:
            return
        file = code.co_filename[len(self._home) :]
        self.calls += 1
        self.changes += self._last not in ("", file)
        self._last = file
        self.functions.setdefault((file, code.co_qualname), None)


class _Start(Protocol):
    def __call__(self, title: str) -> AbstractContextManager[object]: ...


def walks(checkout: Path) -> list[Walk]:
    """Walk through the veil of a checkout, which must be the one that is imported."""
    home, made = checkout / "src" / "veil", list[Walk]()

    def start(title: str) -> Walk:
        made.append(Walk(title, home))
        return made[-1]

    _report(lambda title: nullcontext())  # imports modules and compiles kernels
    _report(start)
    _query(start)
    return made


def _report(start: _Start) -> None:
    """A device answers a survey of OLH, the collector tallies and reads it, and a terminal shows the result."""
    from rich.console import Console

    import veil
    from veil.histogram import Histogram
    from veil.results.render.terminal import render
    from veil.wire.frames import decode_report

    with start("plan"):
        study = Histogram(veil.OLH(1.0, ["tea", "coffee", "water", "juice"]))
        task = study.survey.to_bytes()
    with start("device"):
        sent = veil.Client(task, veil.Ledger(lifetime=8.0)).answer("coffee")
    survey = veil.Survey.from_json(task)
    with start("decode"):
        _, report = decode_report(survey, sent)
    with start("tally"):
        tally = survey.tally(report)
    with start("read"):
        result = study.read(tally)
    with start("render"):
        Console(file=io.StringIO()).print(render(result))


def _query(start: _Start) -> None:
    """A query of SQL that is asked for the second time, and its explanation."""
    import numpy as np

    import veil
    import veil.sql
    from veil.sql import Category, Measure, Table

    record = veil.Record.of(age=veil.Integers(18, 97), state=["NY", "WA", "CA"])
    table = Table(2.0, record, (Measure("purchase", 2), Category("os", ("iOS", "Win"))))
    rng, people = np.random.default_rng(0), 20_000
    rows = {
        "age": rng.integers(18, 98, people),
        "state": rng.choice(["NY", "WA", "CA"], people),
        "purchase": rng.integers(0, 300, people).astype(float),
        "os": rng.choice(["iOS", "Win"], people),
    }
    text = "SELECT AVG(purchase) FROM people WHERE age BETWEEN 30 AND 40 AND os = 'iOS'"
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/shop"
        veil.sql.create(path, table)
        with veil.sql.open(path) as db:
            db.append(rows)
            db.query(text)
            with start("query"):
                db.query(text)
            with start("explain"):
                db.explain(text)


def main(arguments: Iterable[str]) -> None:
    """Print a line for each walk."""
    options = list(arguments)
    checkout = Path(next((one for one in options if not one.startswith("-")), ".")).resolve()
    sys.path.insert(0, str(checkout / "src"))
    sys.dont_write_bytecode = True
    made = walks(checkout)
    for walk in made:
        print(
            f"{walk.title:10} {len(walk.functions):4} functions {walk.files:3} files"
            f" {walk.calls:5} calls {walk.changes:4} changes of file"
        )
        if "-v" in options:
            for file, name in walk.functions:
                print(f"    {file}: {name}")
    print(json.dumps({walk.title: [len(walk.functions), walk.files] for walk in made}))


if __name__ == "__main__":
    main(sys.argv[1:])
