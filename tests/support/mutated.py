"""Damaged copies of every kind of file that a command reads, and commands in processes that are measured.

`Corpus` holds small whole files and the commands that read them. `mutate` damages bytes in ways that disks, transfers
and attackers do. `run` forks a process, so that a crash, a hang or its memory harms nobody else.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import json
import os
import pkgutil
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

SECONDS = 60
PEOPLE = 400
SCHEMA = """[table]
name = "shop"
users = 400
[private.age]
integers = [18, 90]
[private.sex]
labels = ["f", "m"]
[public.spent]
measure = true
scale = 2
"""


@dataclass(frozen=True)
class Command:
    """A command over files of the corpus, which stand in its folder; `damaged` are those that a test damages."""

    arguments: tuple[str, ...]
    damaged: tuple[str, ...]
    others: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    codes: tuple[int, ...] = (0,)
    """Exit codes of the command over whole files."""

    @property
    def name(self) -> str:
        return " ".join(self.arguments)


def _c(line: str, damaged: str, others: str = "", outputs: str = "", codes: Sequence[int] = (0,)) -> Command:
    words = tuple(word.replace("~", " ") for word in line.split())
    return Command(words, tuple(damaged.split()), tuple(others.split()), tuple(outputs.split()), tuple(codes))


COMMANDS = [
    *(_c(f"inspect {kind}.json", f"{kind}.json") for kind in ("drinks", "ages", "words", "sets", "joint", "table")),
    _c("inspect task.json", "task.json"),
    _c("inspect drinks.arrow", "drinks.arrow"),
    _c("inspect drinks.parquet", "drinks.parquet"),
    _c("inspect drinks.bin", "drinks.bin"),
    _c("inspect saved.result.json", "saved.result.json"),
    _c("inspect answers.json", "answers.json"),
    _c("inspect drinks.arrow --study drinks.json", "drinks.arrow drinks.json"),
    _c("tally drinks.json drinks.arrow -o out.bin", "drinks.json drinks.arrow", outputs="out.bin"),
    _c("tally drinks.json drinks.parquet -o out.bin", "drinks.parquet", outputs="out.bin"),
    _c("tally ages.json ages.arrow -o out.bin", "ages.json ages.arrow", outputs="out.bin"),
    _c("merge drinks.json drinks.bin april.bin -o out.bin", "drinks.json drinks.bin april.bin", outputs="out.bin"),
    _c("estimate drinks.json drinks.bin -o out.csv", "drinks.json drinks.bin", outputs="out.csv"),
    _c("estimate ages.json ages.parquet -o out.json", "ages.json ages.parquet", outputs="out.json"),
    _c("estimate joint.json joint.bin", "joint.json joint.bin"),
    _c("difference drinks.json drinks.bin april.bin", "drinks.json drinks.bin april.bin"),
    _c("synthesize joint.json joint.arrow -n 100 -o out.csv", "joint.json joint.arrow", outputs="out.csv"),
    _c("synthesize joint.json joint.bin -n 100 -o out.parquet", "joint.bin", outputs="out.parquet"),
    *(
        _c(f"randomize drinks.json drinks.{kind} -o out.arrow", f"drinks.json drinks.{kind}", outputs="out.arrow")
        for kind in ("csv", "csv.gz", "jsonl", "values.arrow", "values.parquet")
    ),
    _c("simulate drinks.json drinks.csv --seed 1", "drinks.json drinks.csv"),
    _c("compare drinks.csv --studies drinks.json --epsilon 1 --runs 2 --seed 1", "drinks.json drinks.csv"),
    _c("plan marginals people.csv --private sex,age -k 2 --epsilon 1 -o out.json", "people.csv", outputs="out.json"),
    _c("sql shop SELECT~sex,~COUNT(*)~FROM~people~GROUP~BY~sex", "shop/*", "shop"),
    _c("sql table.json EXPLAIN~SELECT~COUNT(*)~FROM~people~WHERE~age~>~30", "table.json"),
    _c("inspect shop", "shop/*", "shop"),
    _c("next run", "run/*", "run"),
    _c("next run words.arrow", "run/* words.arrow", "run words.arrow", outputs="run"),
    _c("survey create ages.json --folder base", "ages.json base/*", "base", outputs="base"),
    _c("survey list --folder base", "base/*", "base", outputs="base"),
    _c("survey show {task} --folder base", "base/*", "base", outputs="base"),
    _c("survey answer {task} --folder base -o out.csv", "base/*", "base", outputs="base out.csv"),
    _c("survey export {task} --folder base -o out.parquet", "base/*", "base", outputs="base out.parquet"),
    *(
        _c(f"survey {what} {{task}} --folder base", "base/*", "base", outputs="base")
        for what in ("open", "close", "rebuild")
    ),
    _c("check --folder base", "base/*", "base", outputs="base", codes=(0, 5)),  # damage is its result
    *(_c(f"{what} --folder base", "base/*", "base", outputs="base") for what in ("audit", "key show")),
    _c("token list --folder base", "base/*", "base", outputs="base"),
    _c("token create --scope answers:read --folder base", "base/*", "base", outputs="base"),
    _c("survey list --settings settings.toml", "settings.toml", "base", outputs="base"),
    _c("backup out.db --folder base", "base/*", "base", outputs="base out.db"),
    _c("restore backup.db --new --folder new", "backup.db", outputs="new"),
    _c("ledger show ledger", "ledger"),
    _c("ledger raise ledger --lifetime 9", "ledger"),
    _c("plan histogram --labels-file labels.txt --epsilon 1 -o out.json", "labels.txt", outputs="out.json"),
    _c("plan items --universe sets.txt -k 2 --epsilon 4 --users 400 -o out.json", "sets.txt", outputs="out.json"),
    _c("plan sql --schema schema.toml --epsilon 4 -o out.json", "schema.toml", outputs="out.json"),
    _c("peos keys party --study drinks.json --protocol sequential", "drinks.json", outputs="party"),
    _c(
        "answer http://127.0.0.1:9/v1/surveys/{task} --value tea --key {key} --lifetime 8 --ledger ledger --patience 0",
        "ledger",
        outputs="ledger ledger.outbox.lock",
        codes=(7,),
    ),
]


@dataclass
class Corpus:
    """Whole files of every kind, and what commands need to know of them."""

    folder: Path
    words: dict[str, str] = field(default_factory=dict)

    def arguments(self, command: Command) -> list[str]:
        """The command's arguments, with this corpus's task and key."""
        return [word.format(**self.words) for word in command.arguments]

    def files(self, command: Command) -> list[str]:
        """The files that a test damages, one after the other."""
        found = [path for pattern in command.damaged for path in sorted(self.folder.glob(pattern))]
        return [str(path.relative_to(self.folder)) for path in found if path.is_file()]

    def copy(self, command: Command, folder: Path) -> None:
        """Put copies of the files that a command reads into a folder."""
        named = [word for word in self.arguments(command) if (self.folder / word).exists()]
        for name in dict.fromkeys([*command.others, *named, *self.files(command)]):
            target = folder / name
            if (self.folder / name).is_dir():
                shutil.copytree(self.folder / name, target, dirs_exist_ok=True)
            elif not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.folder / name, target)


def build_corpus(folder: Path) -> Corpus:
    """Make one small whole file of every kind, by the commands themselves."""
    _import_everything()
    draw = random.Random(1)
    labels = ["tea", "coffee", "water"]
    people = [(draw.choice(labels), draw.randint(18, 90), draw.choice("fm"), draw.choice("abc")) for _ in range(PEOPLE)]
    rows = [f"{drink},{age},{sex},{place}" for drink, age, sex, place in people]
    (folder / "people.csv").write_text("\n".join(["drink,age,sex,place", *rows, ""]))
    (folder / "drinks.csv").write_text("\n".join(["value", *(row[0] for row in people), ""]))
    (folder / "drinks.csv.gz").write_bytes(gzip.compress((folder / "drinks.csv").read_bytes(), mtime=0))
    (folder / "drinks.jsonl").write_text("".join(json.dumps({"value": row[0]}) + "\n" for row in people))
    (folder / "ages.csv").write_text("\n".join(["value", *(str(row[1]) for row in people), ""]))
    (folder / "words.csv").write_text("\n".join(["value", *(row[0] for row in people), ""]))
    (folder / "sets.txt").write_text("\n".join(labels) + "\n")
    _save_values(folder, [row[0] for row in people])

    def veil(line: str) -> None:
        words = [word.replace("~", " ") for word in line.split()]
        outcome = run(words, folder)
        assert outcome.code == 0, (line, outcome)

    veil("plan histogram --labels tea,coffee,water --epsilon 2 -o drinks.json")
    veil("plan numbers --range 0 100 --epsilon 2 -o ages.json")
    veil("plan hitters --max-bytes 6 -k 3 --epsilon 4 --users 400 -o words.json")
    veil("plan items --universe sets.txt -k 2 --epsilon 4 --users 400 -o sets.json")
    veil("plan marginals people.csv --private sex,place,drink -k 2 --epsilon 4 -o joint.json")
    veil("plan sql people.csv --private sex,age --public place --epsilon 4 -o table.json")
    veil("randomize table.json people.csv -o shop --seed 1")
    for kind in ("arrow", "parquet"):
        veil(f"randomize drinks.json drinks.csv -o drinks.{kind} --seed 1")
        veil(f"randomize ages.json ages.csv -o ages.{kind} --seed 1")
    veil("randomize joint.json people.csv -o joint.arrow --seed 1")
    veil("tally joint.json joint.arrow -o joint.bin")
    veil("tally drinks.json drinks.arrow -o drinks.bin")
    veil("tally drinks.json drinks.parquet -o april.bin")
    veil("estimate drinks.json drinks.bin -o answers.json --all")
    veil("next run words.json")
    veil("randomize run words.csv -o words.arrow --seed 1")
    (folder / "labels.txt").write_text("\n".join(labels) + "\n")
    (folder / "settings.toml").write_text('folder = "base"\nquery_seconds = 60\nvalid_days = 30\n')
    (folder / "schema.toml").write_text(SCHEMA)
    veil("survey create drinks.json --new --folder base --open --minimum 1")
    words = _by_library(folder)
    veil(f"survey answer {words['task']} --folder base")
    veil("token create --scope answers:read --folder base")
    veil("backup backup.db --folder base")
    return Corpus(folder, words)


def _import_everything() -> None:
    """Import what commands import, so that each of many processes forked from this one starts at once."""
    import veil

    libraries = "duckdb pandas pyarrow.compute pyarrow.csv pyarrow.parquet rich.table scipy.special scipy.stats sqlglot"
    for name in libraries.split():
        importlib.import_module(name)
    for module in pkgutil.walk_packages(veil.__path__, "veil."):
        runs = module.name.endswith(".__main__")  # importing it runs the command
        if not runs and not module.name.startswith(("veil.engines.spark", "veil.simulation.spark")):
            importlib.import_module(module.name)
    _command()


@cache
def _command() -> Any:
    """Return the `veil` command, built once for all processes."""
    import typer

    from veil.cli.main import app

    return typer.main.get_command(app)


def _save_values(folder: Path, values: list[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"value": values})
    pq.write_table(table, folder / "drinks.values.parquet")
    with pa.OSFile(str(folder / "drinks.values.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _by_library(folder: Path) -> dict[str, str]:
    """Write what no command writes: a bare task, a saved result and a ledger; return the task's id and a key."""
    from veil import Client, Ledger
    from veil.results.render.files import save
    from veil.study import study_from_json
    from veil.wire.tallies import decode_tally

    study = study_from_json(json.loads((folder / "drinks.json").read_bytes()))
    (folder / "task.json").write_bytes(study.survey.to_bytes())
    save(study.read(decode_tally(study.survey, (folder / "drinks.bin").read_bytes())), folder / "saved.result.json")
    Client(study.survey.to_bytes(), Ledger(folder / "ledger", lifetime=8.0)).answer("tea")
    _store_reports(folder, study)
    return {"task": study.survey.task, "key": "A" * 43}


def _store_reports(folder: Path, study: Any) -> None:
    """Put the reports of `drinks.arrow` into the collector's database, with ids in a run and ids beside reports."""
    from veil.collector.service import open_store
    from veil.collector.settings import CollectorSettings
    from veil.collector.store.base import Group
    from veil.files import read_reports

    store = open_store(CollectorSettings(folder=str(folder / "base")), make=False)
    stored = store.find(study.survey.task)
    assert stored is not None
    payloads = b"".join(each.to_bytes() for each in read_reports(folder / "drinks.arrow", study.survey))
    size = len(payloads) // PEOPLE
    draw = random.Random(2)
    for start in range(0, PEOPLE, 50):
        part = payloads[start * size : (start + 50) * size]
        assert store.append([Group(stored.key, draw.randbytes(16 * 50), part, 50)], 1_000) == [50]
        if start == PEOPLE // 2:
            store.fold_all([stored.key])
    store.close()


# -- damage ------------------------------------------------------------------------------------------------------------


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Return damaged bytes; JSON and other text are also damaged as a person or a program would."""
    ways: list[Callable[[bytearray, random.Random], None]] = [_flip, _overwrite, _cut, _remove, _insert, _repeat, _zero]
    text = data[:1] in (b"{", b"[")
    if text and draw.random() < 0.5:
        with contextlib.suppress(ValueError, RecursionError):
            return _other_json(json.loads(data), draw)
    damaged = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        draw.choice(ways)(damaged, draw)
    return bytes(damaged)


def _place(data: bytearray, draw: random.Random) -> int:
    """A place to damage: the ends, where headers and footers stand, more often than the middle."""
    size = len(data)
    near = min(size, 200)
    return draw.choice((draw.randrange(size + 1), draw.randrange(near + 1), size - draw.randrange(near + 1)))


def _flip(data: bytearray, draw: random.Random) -> None:
    if data:
        data[min(_place(data, draw), len(data) - 1)] ^= 1 << draw.randrange(8)


def _overwrite(data: bytearray, draw: random.Random) -> None:
    at = _place(data, draw)
    new = draw.choice((b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0" * 4, draw.randbytes(draw.randrange(1, 9))))
    data[at : at + len(new)] = new


def _cut(data: bytearray, draw: random.Random) -> None:
    del data[_place(data, draw) :]


def _remove(data: bytearray, draw: random.Random) -> None:
    at = _place(data, draw)
    del data[at : at + draw.choice((1, 8, 64, 1000))]


def _insert(data: bytearray, draw: random.Random) -> None:
    at = _place(data, draw)
    data[at:at] = draw.choice((b"\0", b"[" * 100_000, b"9" * 10_000, b'"', b"\n", draw.randbytes(64)))


def _repeat(data: bytearray, draw: random.Random) -> None:
    at = _place(data, draw)
    data[at:at] = bytes(data[at : at + draw.choice((1, 8, 64, 1000))]) * draw.choice((1, 2, 50))


def _zero(data: bytearray, draw: random.Random) -> None:
    at = _place(data, draw)
    length = min(draw.choice((8, 64, 512)), len(data) - at)
    data[at : at + length] = bytes(length)


STRANGE: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 2**63, 2**64, 10**40, 0.5, -0.0, 1e300),
    *("", "x", "1e999", "nan", "-1", "\0", "\ud800", "9" * 5000),
    *([], [[]], {}, {"kind": []}, ["a"] * 3, [None]),
)


def _other_json(document: Any, draw: random.Random) -> bytes:
    """Return JSON with one part left out, doubled, renamed or replaced by a value of another kind."""
    for _ in range(draw.choice((1, 1, 2))):
        holders = [document] if isinstance(document, (dict, list)) and document else []
        for holder in holders:  # grows while it is read: all containers that are not empty
            inner = holder.values() if isinstance(holder, dict) else holder[:50]
            holders += [part for part in inner if isinstance(part, (dict, list)) and part]
        if not holders:
            break
        holder = draw.choice(holders)
        key = draw.choice(list(holder)) if isinstance(holder, dict) else draw.randrange(len(holder))
        way = draw.randrange(4)
        if way == 0:
            del holder[key]
        elif way == 1 and isinstance(holder, dict):
            holder[draw.choice(("kind", "extra", "", key.upper()))] = holder.pop(key)
        elif way == 2 and isinstance(holder, list):
            holder.append(holder[key])
        else:
            holder[key] = draw.choice(STRANGE)
    return json.dumps(document).encode()


# -- running -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """How a command ended. `code` is negative for a signal."""

    code: int
    stdout: str
    stderr: str
    peak: int
    """The most memory that it had, in bytes."""


def run(arguments: Sequence[str], folder: Path) -> Outcome:
    """Run `veil` in a process forked from this one, in a folder of its own; it is killed after SECONDS."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            _become(arguments, folder, out.fileno(), err.fileno())
        _, status, usage = os.wait4(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Outcome(os.waitstatus_to_exitcode(status), *texts, usage.ru_maxrss * 1024)


def _become(arguments: Sequence[str], folder: Path, out: int, err: int) -> None:
    code = 70
    try:
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(folder)
        sys.argv = ["veil", *arguments]
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, encoding="utf-8", errors="replace") for number, mode in enumerate("rww")
        )
        _command()(prog_name="veil")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
