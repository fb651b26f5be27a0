"""`veil plan KIND`: compare the methods for a goal, explain the choice, and write the study.

`veil.planning` compares and chooses. Here the options are checked against the goal and made into domains.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from veil.cli.options import HeldDomain, HeldLabels, HeldLabelsFile, given_changes, goals, whole_number
from veil.cli.output import AsJson, Document, console, flag, print_error, reporting, warn, wrote
from veil.errors import InputError, ParameterError, SqlError
from veil.tools.messages import unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veil.domain import Domain, Record
    from veil.planning import Central, Choice, Goal, Wishes
    from veil.sql.schema import Schema

_HOLDING = ("domain", "labels", "labels_file", "range", "max_bytes", "bits", "universe")
_MANY_LABELS = 100  # of an attribute, above which they may be about single people
_MOST_LOCAL = 8.0
"""What a local eps may be behind a shuffler, unless --epsilon says it."""
_USUAL_PEOPLE = 1_000_000


@reporting
def plan(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND", help="A goal, or a kind of study. Without it, list all there are.", autocompletion=goals
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="For marginals and sql: a file with the columns of --private, whose values become public (.csv, "
            ".parquet).",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="The privacy of one person: smaller is more private. With --shuffler: the most that is left if the "
            "shuffler tells who sent what (default: 8)."
        ),
    ] = None,
    shuffler: Annotated[
        bool, flag("--shuffler", "For histogram: reports are mixed by a shuffler before anybody reads them.")
    ] = False,
    epsilon_central: Annotated[
        float | None,
        typer.Option(metavar="E", help="With --shuffler: the privacy towards whoever sees only mixed reports."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(metavar="D", help="With --shuffler: the probability that this may fail with.")
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="N",
            help="How many people will take part. Default: 1,000,000; for sql the rows of FILE, or as the schema says.",
        ),
    ] = None,
    domain: HeldDomain = None,
    labels: HeldLabels = None,
    labels_file: HeldLabelsFile = None,
    missing: Annotated[
        Literal["refuse", "category"] | None,
        typer.Option(help='With labels or --domain: whether a missing value is an answer of its own, "(missing)".'),
    ] = None,
    ends: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--range", metavar="LO HI", help="People hold a number from LO to HI, or a time: 2026-01-01 2027-01-01."
        ),
    ] = None,
    integers: Annotated[bool, flag("--integers", "With --range: people hold a whole number.")] = False,
    buckets: Annotated[
        int | None, typer.Option(metavar="N", help="With --range: how fine the distribution is (default: 1024).")
    ] = None,
    rough: Annotated[
        bool, flag("--rough", "Numbers may be heaped, as at round ones: take a way whose errors hold on any data.")
    ] = False,
    max_bytes: Annotated[int | None, typer.Option(metavar="B", help="People hold text of at most B bytes.")] = None,
    bits: Annotated[int | None, typer.Option(metavar="M", help="People hold a string of M bits.")] = None,
    universe: Annotated[
        Path | None, typer.Option(help="People hold sets of the items in this text file, one item per line.")
    ] = None,
    private: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="With FILE: people hold these columns, as in age,sex,region."),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="With FILE, for sql: these columns are known of everybody: os,purchase."),
    ] = None,
    query: Annotated[
        list[str] | None,
        typer.Option(metavar="SQL", help="For sql: a query whose error is compared. May be given several times."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="For sql: a file that describes the table (.toml, .json), instead of FILE.")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="People hold this attribute: sex=f,m or age=18..99 or age=0..100/10, which is in 10 equal cells."
            " May be given several times, and comes before what FILE says.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            metavar="K",
            help="How many strings, items or sets to look for; of marginals and sql, how many attributes.",
        ),
    ] = None,
    sets: Annotated[bool, flag("--sets", "Look for sets of items, single ones among them.")] = False,
    method: Annotated[
        str | None,
        typer.Option("--method", "--oracle", metavar="NAME", help="Take this way to ask, not the one that is best."),
    ] = None,
    max_report_bytes: Annotated[
        int | None, typer.Option(metavar="B", help="The longest report that may be sent.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another parameter of the study. May be given several times."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the study here, as in study.json.")] = None,
    listed: Annotated[bool, flag("--list", "List all goals and kinds of studies.")] = False,
    as_json: AsJson = False,
) -> Document:
    """Compare methods for a goal, explain the choice, and write the study to a file."""
    from veil.cli.input import check_output
    from veil.cli.results import show_choice, show_goals
    from veil.planning import Wishes, goal_of
    from veil.privacy import weakness
    from veil.tools.filesystem import write_atomically

    screen = console(as_json)
    if kind is None or listed:
        return show_goals(screen)
    goal = goal_of(kind)
    central = _central(epsilon_central, delta, shuffler=shuffler)
    if central is not None and epsilon is None:
        epsilon = _MOST_LOCAL
    if epsilon is None and schema is None:
        raise typer.BadParameter("how private people are must be said: expected --epsilon, as in --epsilon 1")
    given = {
        "domain": domain,
        "labels": labels,
        "labels_file": labels_file,
        "missing": missing,
        "range": ends,
        "integers": integers or None,
        "buckets": buckets,
        "rough": rough or None,
        "max_bytes": max_bytes,
        "bits": bits,
        "universe": universe,
        "file": file,
        "private": ",".join(private) if private else None,
        "public": ",".join(public) if public else None,
        "query": query or None,
        "schema": schema,
        "attribute": attribute or None,
        "k": k,
        "sets": sets or None,
        "shuffler": shuffler or None,
    }
    check_options(goal, {name for name, value in given.items() if value is not None})
    check_output(out, [path for path in (labels_file, universe, file, schema) if path is not None])
    found = None if schema is None else _of_schema(schema, epsilon, users)
    table = None if found is None else found.table
    held = held_by(goal, given) if table is None else table.private
    many, known_from = _people(goal, users, file, held, None if found is None else found.users)
    wishes = Wishes(
        epsilon if table is None else table.epsilon,  # type: ignore[arg-type]  # one of them is given
        held,
        many,
        method,
        max_report_bytes,
        k=k,
        buckets=buckets,
        sets=sets,
        rough=rough,
        public=public_by(file, given) if table is None else table.public,
        queries=query or (),
        table=table,
        auto=found is not None and found.auto,
        central=central,
        settings=given_changes(changes),
    )
    if query:
        _check_queries(wishes, quiet=as_json)
    choice = goal.choose(wishes)
    show_choice(choice, screen)
    if known_from is not None:
        screen.print(f"Planned for {many:,} people, {known_from}: --users says another number.")
    if central is not None:
        _warn_of_shuffler(choice, central)
    elif (weak := weakness(choice.study.guarantee)) is not None:
        warn(weak)
    if file is not None:
        warn(
            f"names and values of these columns of {file} stand in the study, which is public: may everybody see them?"
        )
        warn_of_many(wishes.held)
    study = choice.study
    document = choice.to_json() | {"kind": study.kind, "task": study.survey.task}
    if out is not None:
        write_atomically(out, study.to_bytes())
        wrote(screen, out, f"the study of kind {study.kind}, whose task is {study.survey.task[:12]},")
    return document | {"out": None if out is None else str(out)}


def _central(epsilon: float | None, delta: float | None, *, shuffler: bool) -> Central | None:
    """What is promised after a shuffler, where there is one."""
    from veil.planning import Central

    if not shuffler:
        if epsilon is not None or delta is not None:
            raise typer.BadParameter("--epsilon-central and --delta go with --shuffler")
        return None
    if epsilon is None or delta is None:
        raise typer.BadParameter(
            "--shuffler needs what is promised after it: expected --epsilon-central and --delta, as in 0.1 and 1e-9"
        )
    return Central(epsilon, delta)


def _warn_of_shuffler(choice: Choice, central: Central) -> None:
    """Say what is left without the shuffler, and whether delta is one that anybody should accept."""
    local, users = choice.facts["epsilon"], choice.facts["users"]
    if local > central.epsilon:
        warn(
            f"the promise of eps = {central.epsilon:g} rests on the shuffler: if it tells the collector who sent what, "
            f"people are left with their local eps of {local:.4g}; and it needs the reports of all {users:,} people, "
            "mixed together"
        )
    if central.delta * users >= 1:
        warn(
            f"a delta of {central.delta:g} among {users:,} people may give somebody away: expected far below 1 / users"
        )


def _of_schema(schema: Path, epsilon: float | None, users: int | None) -> Schema:
    """What a schema file says, with another epsilon or number of people where they are given."""
    from veil.sql.schema import load_schema

    return load_schema(schema, epsilon, users)


def _people(
    goal: Goal, users: int | None, file: Path | None, held: Domain | None, scheduled: int | None
) -> tuple[int, str | None]:
    """How many people will take part, and where that is from if nobody said it here."""
    from veil.domain import Record
    from veil.files import count_rows
    from veil.files.values import read_columns

    if users is not None:
        return users, None
    if scheduled is not None:
        return scheduled, "as the schema says"
    if goal.name != "sql" or file is None or not isinstance(held, Record):
        return _USUAL_PEOPLE, None
    rows = count_rows(file) or sum(table.num_rows for table in read_columns(file, _columns_of(file, held)))
    return rows, f"the rows of {file}"


def _columns_of(file: Path, held: Record) -> list[str]:
    """One column that people hold and a file has."""
    from veil.files import column_names

    return [name for name in column_names(file) if name in held.names][:1]


def _check_queries(wishes: Wishes, *, quiet: bool) -> None:
    """Point at the mistake in a query, and say which one it is."""
    from veil.domain import Record
    from veil.sql.language.parsing import parse
    from veil.sql.language.statements import pointed
    from veil.sql.table import Table

    if not isinstance(wishes.held, Record):
        return
    table = wishes.table
    if not isinstance(table, Table):
        with contextlib.suppress(ParameterError):  # said by whoever compares the ways
            table = Table(wishes.epsilon, wishes.held, tuple(wishes.public))
    for number, text in enumerate(wishes.queries, start=1):
        try:
            if isinstance(table, Table):
                parse(text, table)
        except SqlError as problem:
            if not quiet:
                print_error(f"query {number} of {len(wishes.queries)}:")
                print_error(pointed(text, problem))
            raise


def check_options(goal: Goal, given: set[str]) -> None:
    """Refuse options that the goal does not take, or that do not go together."""
    strange = sorted(given - set(goal.takes))
    if strange:
        taken = ", ".join(map(_flag, goal.takes)) or "none of these options"
        raise typer.BadParameter(f"{_flag(strange[0])} does not apply to {goal.name}, which takes {taken}")
    holding = [name for name in _HOLDING if name in given]
    if "schema" in given and (others := given & {"file", "private", "public", "attribute"}):
        raise typer.BadParameter(
            f"expected FILE or --schema, not both: a schema says what people hold, leave {_flag(min(others))} out"
        )
    if ("file" in given) != ("private" in given):
        raise typer.BadParameter("FILE and --private go together: which of its columns people hold")
    if "public" in given and "file" not in given:
        raise typer.BadParameter("--public goes with FILE: which of its columns are known of everybody")
    if len(holding) > 1:
        raise typer.BadParameter(f"say once what people hold: {' and '.join(map(_flag, holding))} are given")
    if "missing" in given and not given & {"domain", "labels", "labels_file"}:
        raise typer.BadParameter("--missing goes with --domain, --labels or --labels-file")
    if "integers" in given and "range" not in given:
        raise typer.BadParameter("--integers goes with --range")


def _flag(name: str) -> str:
    return {"k": "-k", "file": "FILE"}.get(name, f"--{name.replace('_', '-')}")


def held_by(goal: Goal, given: dict[str, Any]) -> Domain | None:
    """What people hold, by the one option that says it."""
    from veil.cli.input import read_lines
    from veil.domain import Bits, Categories, Text
    from veil.planning.domains import between, items_of, labelled

    if given["private"] is not None or given["attribute"] is not None:
        return _record(goal, given["file"], given["private"], given["attribute"] or ())
    name = next((name for name in _HOLDING if given[name] is not None), None)
    missing: Literal["refuse", "category"] = given["missing"] or "refuse"
    made: dict[str, Any] = {
        "domain": lambda count: Categories.range(count, missing=missing),
        "labels": lambda text: labelled(text, missing=missing),
        "labels_file": lambda path: Categories(read_lines(path), missing=missing),
        "range": lambda ends: between(*ends, integers=bool(given["integers"]), buckets=given["buckets"]),
        "max_bytes": Text,
        "bits": Bits,
        "universe": lambda path: items_of(read_lines(path)),
    }
    return None if name is None else made[name](given[name])


def _record(goal: Goal, file: Path | None, private: str | None, attributes: Sequence[str]) -> Domain:
    """Records of the attributes that are given, and of the columns of a file that are not given so."""
    from veil.cli.input import check_inputs
    from veil.domain import Record
    from veil.planning.domains import attribute

    given: dict[str, Domain] = {}
    for text in attributes:
        name, part = attribute(text)
        if name in given:
            raise typer.BadParameter(f"--attribute {name} is given twice")
        given[name] = part
    names = [] if private is None else _names("--private", private)
    found: dict[str, Domain] = {}
    if file is not None:
        check_inputs(file)
        _check_columns(file, [*names, *given])
        found = goal.dimensions(file, [name for name in names if name not in given])
    parts = {name: given.get(name) or found[name] for name in names} | given
    return Record(tuple(parts.items()))


def _names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) != len(names):
        raise typer.BadParameter(f"{option} names columns that differ, as in {option} age,sex,region")
    return names


def public_by(file: Path | None, given: dict[str, Any]) -> Sequence[Any]:
    """The public columns that a file's columns are proposed as."""
    if file is None or given["public"] is None:
        return ()
    from veil.planning.sql import proposed_public

    names = _names("--public", given["public"])
    attributes = [text.partition("=")[0].strip() for text in given["attribute"] or ()]
    for name in (*_names("--private", given["private"]), *attributes):
        if name in names:
            raise typer.BadParameter(f"{name} is both private and public: name it in one of --private and --public")
    _check_columns(file, names)
    return proposed_public(file, names)


def _check_columns(file: Path, names: Sequence[str]) -> None:
    """Refuse attributes that are no columns of a file, with those that may be meant: here the file is public."""
    from veil.files import column_names

    have = column_names(file)
    for name in names:
        if name not in have:
            raise InputError(f"{file}: {unknown_name('a column', name, have)}")


def warn_of_many(held: Domain | None) -> None:
    """Say which attributes have so many labels that they may be about single people."""
    from veil.domain import Categories, Record

    for name, part in held.attributes if isinstance(held, Record) else ():
        if isinstance(part, Categories) and part.labels is not None and part.count > _MANY_LABELS:
            warn(
                f"{name} has {part.count:,} different labels, and all of them stand in the study: if they are names, "
                "or anything else that tells who somebody is, leave it out, or put them together in fewer groups"
            )
