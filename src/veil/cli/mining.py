"""What `veil itemsets` does and shows: sets from files, a campaign in a folder, tables of what is mined.

A folder holds `campaign.json`, the task of each round as `round-000.json`, and its answer as `round-000.tally`.
"""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from veil.campaign import CampaignRun, Round
from veil.cli import tables
from veil.cli.outcome import Document
from veil.cli.pipeline import Watch, check_inputs, load_tallies, read_lines, save_survey
from veil.domain import Categories, Items, domain_from_json
from veil.domain.set_text import SEPARATOR
from veil.entropy import Batch, Seeded
from veil.errors import EmptyError, InputError, MismatchError, WireError
from veil.files import read_sets
from veil.itemsets import SVIM, SVSM, FrequentItems, FrequentItemsets, Rule
from veil.privacy import decimal_text
from veil.results.estimate import Row
from veil.simulation import walk_rounds
from veil.tools.arguments import is_int
from veil.tools.canonical import Json, canonical, number, parse, take
from veil.tools.durable import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Mined",
    "Mining",
    "load_sets",
    "mine_file",
    "mined_document",
    "mined_table",
    "mined_tables",
    "move_on",
    "open_folder",
    "round_document",
    "start_folder",
    "universe_of",
]

Mined = FrequentItems | FrequentItemsets

_CAMPAIGN = "campaign.json"
_SIMULATION = "simulation.json"


@dataclass(frozen=True)
class Mining:
    """What is looked for: the k most frequent items of a universe, or with `sets` the k most frequent sets of them."""

    k: int
    epsilon: float
    domain: Items
    sets: bool

    @property
    def campaign(self) -> SVIM | SVSM:
        return (SVSM if self.sets else SVIM)(self.k, self.epsilon, self.domain)

    def to_json(self) -> Json:
        what = {"k": self.k, "epsilon": decimal_text(self.epsilon), "sets": self.sets}
        return {"kind": "veil-itemsets", "version": 1, "domain": self.domain.to_json(), **what}

    @classmethod
    def from_json(cls, document: Any) -> Mining:
        version, domain, k, epsilon, sets = take(document, "veil-itemsets", "version", "domain", "k", "epsilon", "sets")
        held = domain_from_json(domain)
        if version != 1 or not isinstance(held, Items) or not is_int(k) or not isinstance(sets, bool):
            raise WireError("expected a campaign for items or itemsets of version 1")
        return cls(k, number(epsilon), held, sets)


# -- sets --------------------------------------------------------------------------------------------------------------


def load_sets(values: Path, column: str | None, separator: str, universe: Path | None) -> tuple[Items, Any]:
    """The sets of a file, and what they may hold: the items of a text file, or those that the sets have."""
    import pyarrow as pa

    check_inputs(values)
    read = list(read_sets(values, column, separator))
    if not read:
        raise EmptyError(f"{values} holds no people")
    sets = pa.concat_tables(read).column(0)
    if not pa.types.is_list(sets.type) and not pa.types.is_large_list(sets.type):
        raise InputError(f"expected a column of lists in {values}: one list of items for each person")
    if pa.types.is_integer(sets.type.value_type):
        return _universe(universe, sets, whole=True), sets
    if not pa.types.is_string(sets.type.value_type) and not pa.types.is_large_string(sets.type.value_type):
        raise InputError(f"expected lists of text or of whole numbers in {values}")
    return _universe(universe, sets, whole=False), sets


def universe_of(path: Path) -> Items:
    """Items from a text file, one a line; whole numbers where all lines are."""
    lines = read_lines(path)
    return Items(Categories([int(line) for line in lines] if all(map(_is_whole, lines)) else lines))


def _universe(path: Path | None, sets: Any, *, whole: bool) -> Items:
    import pyarrow.compute as pc

    if path is None:
        found = {item for item in pc.unique(pc.list_flatten(sets)).to_pylist() if item is not None}
        if not found:
            raise EmptyError("all sets are empty: there is nothing to mine")
        return Items(Categories(sorted(found if whole else {unicodedata.normalize("NFC", item) for item in found})))
    lines = read_lines(path)
    if not whole:
        return Items(Categories(lines))
    if not all(map(_is_whole, lines)):
        raise InputError(f"expected whole numbers in {path}, one a line: that is what the sets hold")
    return Items(Categories([int(line) for line in lines]))


def _is_whole(line: str) -> bool:
    return line.removeprefix("-").isdecimal()


# -- campaigns in folders ----------------------------------------------------------------------------------------------


def start_folder(mining: Mining, folder: Path) -> CampaignRun:
    """A campaign that keeps its answers in a folder: a new one, or the same one where it was left."""
    campaign = mining.campaign
    folder.mkdir(parents=True, exist_ok=True)
    text = canonical(mining.to_json())
    _agree(folder / _CAMPAIGN, text, "another campaign: take another folder, or the same options")
    return CampaignRun(campaign, folder)


def open_folder(folder: Path) -> CampaignRun:
    """The campaign of a folder, where it was left."""
    path = folder / _CAMPAIGN
    if not path.is_file():
        raise InputError(f"there is no campaign in {folder}: `veil itemsets plan` starts one")
    return CampaignRun(Mining.from_json(parse(path.read_bytes())).campaign, folder)


def move_on(run: CampaignRun, folder: Path, tally: Path | None) -> Path | None:
    """Runs at the collector: take the answer to the current round, if there is one, and write the next round's task."""
    if tally is not None:
        if run.round is None:
            raise InputError("this campaign is finished: it takes no more answers")
        run.answer(load_tallies(run.round.survey, [tally]))
    if run.round is None:
        return None
    task = folder / f"round-{run.finished:03d}.json"
    save_survey(run.round.survey, task)
    return task


def round_document(run: CampaignRun, asked: Round) -> Document:
    """What the current round asks, of how many people, through what."""
    (question,) = asked.survey.questions
    return {
        "round": run.finished,
        "task": asked.survey.task,
        "share": float(asked.people),
        "view": question.view.kind,
        "mechanism": question.mechanism.signature,
        "report_bytes": asked.survey.layout.size,
    }


def mine_file(mining: Mining, sets: Any, folder: Path | None, seed: int | None, watch: Watch) -> tuple[Mined, int]:
    """The whole campaign on known sets; also how many rounds had been answered before, in the folder.

    Who is asked in which round is drawn once and kept in the folder, so that nobody is asked twice after a restart.
    """
    codes = mining.domain.encode(sets)
    run = CampaignRun(mining.campaign) if folder is None else start_folder(mining, folder)
    kept = secrets.randbits(52) if folder is None else _kept_order(folder, len(codes), seed is not None)
    devices = Batch() if seed is None else Seeded(seed)
    order = Seeded(kept) if seed is None else devices
    before = run.finished
    with watch("asking", len(codes)) as advance:
        advance(sum(round(len(codes) * done.people) for done in run.answered))
        for people in walk_rounds(run, codes, order, devices):
            advance(people)
    return run.result, before


def _kept_order(folder: Path, people: int, seeded: bool) -> int:
    """The number that the order of the people is drawn by: the one in the folder, if it is of the same people."""
    path = folder / _SIMULATION
    if not path.exists():
        made = {"order": secrets.randbits(52), "people": people, "seeded": seeded}
        write_atomically(path, canonical({"kind": "veil-simulation", **made}))
    order, *same = take(parse(path.read_bytes()), "veil-simulation", "order", "people", "seeded")
    if same != [people, seeded] or not is_int(order):
        raise MismatchError(f"{folder} holds a simulation of other people, or one that differs in having a --seed")
    return int(order)


def _agree(path: Path, text: bytes, otherwise: str) -> None:
    if not path.exists():
        write_atomically(path, text)
    elif path.read_bytes() != text:
        raise MismatchError(f"{path.parent} holds {otherwise}")


# -- what is mined -----------------------------------------------------------------------------------------------------


def mined_document(found: Mined, rules: list[Rule] | None) -> Document:
    """Everything found with its interval, how each round went, and rules where they were asked for."""
    rows: list[Document] = [asdict(row) for row in found.rows]
    name = "items" if isinstance(found, FrequentItems) else "itemsets"
    document = {
        "people": sum(step.people for step in found.history),
        name: [row | {"significant": sure} for row, sure in zip(rows, _surely(found), strict=True)],
        "rounds": [asdict(step) for step in found.history],
    }
    return document if rules is None else document | {"rules": [asdict(rule) for rule in rules]}


def _surely(found: Mined) -> list[bool]:
    """Which rows exceed what candidates that nobody holds do, but for a chance of 5 % over all of them."""
    if isinstance(found, FrequentItems):
        return [row.frequency > found.estimate.threshold() for row in found.rows]
    single, more = found.singles.estimate, found.estimate
    floors = {True: single.threshold(), False: 0.0 if more is None else more.threshold()}
    return [row.frequency > floors[len(row.items) == 1] for row in found.rows]


def mined_tables(found: Mined, rules: list[Rule] | None) -> Iterator[Table]:
    """How the rounds went, what was found with 95 % intervals, and rules where they were asked for."""
    yield _rounds_table(found)
    rows = [_row(row) for row in found.rows]
    surely = {row.value for row, sure in zip(rows, _surely(found), strict=True) if sure}
    what = "items" if isinstance(found, FrequentItems) else "sets of items"
    yield tables.rows_table(rows, surely, f"the {len(rows)} most frequent {what}")
    if rules is not None:
        yield _rules_table(rules)


def _rounds_table(found: Mined) -> Table:
    people = sum(step.people for step in found.history)
    table = Table(box=box.SIMPLE_HEAD, title=Text(f"{people:,} people, each asked once", style="bold"))
    table.title_justify = "left"
    for heading in ("round", "people", "through", "candidates", "padded to", "update"):
        table.add_column(heading, justify="left" if heading in ("round", "through") else "right")
    for step in found.history:
        numbers = (f"{step.candidates:,}", str(step.length), f"{step.update:.3f}")
        table.add_row(step.name, f"{step.people:,}", step.mechanism.partition("(")[0], *numbers)
    return table


def _row(row: Any) -> Row:
    value = row.value if isinstance(row, Row) else " + ".join(map(str, row.items))
    return Row(value, row.frequency, row.count, row.stderr, row.low, row.high)


def _rules_table(rules: list[Rule]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=Text(f"{len(rules)} rules", style="bold"), title_justify="left")
    for heading in ("who holds", "also holds", "confidence", "95 % interval", "lift", "95 % interval"):
        table.add_column(heading, justify="left" if "holds" in heading else "right")
    for rule in rules:
        sure, lift = rule.confidence_interval, rule.lift_interval
        table.add_row(
            *(tables.shown(" + ".join(map(str, side))) for side in (rule.given, rule.then)),
            tables.percent(rule.confidence, 0),
            f"{100 * sure[0]:.0f} to {100 * sure[1]:.0f} %",
            f"{rule.lift:.2f}",
            f"{lift[0]:.2f} to {lift[1]:.2f}",
        )
    return table


def mined_table(found: Mined, kind: str) -> pa.Table:
    """What was found, as columns of a file; a set's items are text in CSV, which has no lists."""
    import pyarrow as pa

    table = found.to_arrow()
    if isinstance(found, FrequentItems) or kind != ".csv":
        return table
    joined = [SEPARATOR.join(items) for items in table.column("items").to_pylist()]
    return table.set_column(0, "items", pa.array(joined, pa.string()))
