"""What people hold, by the options of `veil plan` that say it: checked against the goal, and made into a domain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from veil.cli.outcome import warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from veil.domain import Domain
    from veil.planning import Goal

__all__ = ["check_options", "held_by", "public_by", "warn_of_many"]

_HOLDING = ("domain", "labels", "labels_file", "range", "max_bytes", "bits", "universe")
_MANY_LABELS = 100  # of an attribute, above which they may be about single people


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
    from veil.cli.files import read_lines
    from veil.domain import Bits, Categories, Text
    from veil.planning.held import between, items_of, labelled

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
    from veil.cli.files import check_inputs
    from veil.domain import Record
    from veil.planning.held import attribute

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
    from veil.errors import InputError
    from veil.files import column_names
    from veil.tools.messages import unknown_name

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
