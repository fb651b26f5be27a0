"""Files of reports cut into pieces, one per task. Their footers are read and checked, their reports are not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from veil.errors import EmptyError, InputError, VeilError
from veil.files.arrow_files import PARQUET, is_address
from veil.files.reports import ReportsFile
from veil.survey import Survey, check_waves

_PIECE_BYTES = 64 << 20

Piece = tuple[tuple[int, int, int], ...]
"""Runs of groups: the number of a file, its first group, and the one behind the last."""


@dataclass(frozen=True)
class Files:
    """Files with the number of reports in each of their groups."""

    names: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    fakes: int
    ids: bool
    """Whether each report has an id beside it."""
    size: int
    """Bytes of one report."""
    wave: int = 1
    """Which wave of the survey the reports are of."""
    seeded: bool = False
    """True if any of the reports were drawn from a seed."""

    @classmethod
    def of(cls, survey: Survey, names: Sequence[str]) -> Files:
        """Read the footers of files; refuses one of another task, or with other columns, by its name."""
        from veil.kernels.parallel import in_order

        def look(name: str) -> tuple[tuple[int, ...], int, bool, int, bool]:
            try:
                with ReportsFile(name, survey, fakes=True) as file:
                    file.check_ids()
                    return file.rows, file.fakes, file.has_ids, file.wave, file.seeded
            except VeilError as problem:
                raise problem if name in str(problem) else type(problem)(f"{name}: {problem}") from None

        seen = in_order(look, names)
        waves = {wave for *_, wave, _ in seen}
        check_waves(waves)
        ids = {has_ids for _, _, has_ids, *_ in seen}
        if len(ids) > 1:
            raise InputError("some of these files have ids of reports and some have none: expected one kind of files")
        rows, fakes = tuple(rows for rows, *_ in seen), sum(count for _, count, *_ in seen)
        seeded = any(drawn for *_, drawn in seen)
        size, wave = max(1, survey.layout.size), next(iter(waves), 1)
        return cls(tuple(names), rows, fakes, ids == {True}, size, wave, seeded)

    @property
    def people(self) -> int:
        """How many reports there are."""
        return sum(map(sum, self.rows))

    def cut(self, parallel: int, pieces: int | None = None) -> tuple[Piece, ...]:
        """Pieces of about the same number of reports."""
        return cut(self.rows, self.size, parallel, pieces)


def cut(rows: Sequence[Sequence[int]], size: int, parallel: int, pieces: int | None = None) -> tuple[Piece, ...]:
    """Groups of rows of so many bytes, by file, as pieces in order: at most 64 MB each, and one per core at least.

    >>> cut([[5, 5], [10]], 1, parallel=2)
    (((0, 0, 2),), ((1, 0, 1),))
    """
    groups = [(file, group, many) for file, own in enumerate(rows) for group, many in enumerate(own) if many]
    if not groups:
        raise EmptyError("there are no people in these files: expected at least one")
    people = sum(many for _, _, many in groups)
    if pieces is None:
        needed = -(-people * size // _PIECE_BYTES)
        pieces = parallel * max(1, -(-needed // parallel))
    made: list[list[tuple[int, int]]] = [[]]
    before = 0
    for file, group, many in groups:
        if made[-1] and (2 * before + many) * pieces > 2 * people * len(made) and len(made) < pieces:
            made.append([])
        made[-1].append((file, group))
        before += many
    return tuple(tuple(_runs(piece)) for piece in made)


def _runs(groups: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Groups of one file that follow each other, as one run."""
    runs: list[tuple[int, int, int]] = []
    for file, group in groups:
        if runs and runs[-1][0] == file and runs[-1][2] == group:
            runs[-1] = (file, runs[-1][1], group + 1)
        else:
            runs.append((file, group, group + 1))
    return runs


def found_files(paths: Sequence[str | Path]) -> list[str]:
    """The files of reports at these paths: files as they are, of folders all Parquet files in them and below.

    What Spark and Hadoop leave beside their output, names that begin with _ or with a dot, is passed over.
    """
    found: list[str] = []
    for path in map(str, paths):
        if is_address(path):
            found += _at_address(path)
        elif Path(path).is_dir():
            below = sorted(Path(path).rglob("*"))
            inside = [file for file in below if _is_ours(file.relative_to(path)) and file.is_file()]
            found += [str(file.resolve()) for file in inside]
        elif Path(path).is_file():
            found.append(str(Path(path).resolve()))
        else:
            raise InputError(f"there is no file {path}")
    if not found:
        raise EmptyError("there are no files of reports there: expected Parquet")
    twice = next((name for i, name in enumerate(found) if name in found[:i]), None) if len(found) < 1000 else None
    if twice or len(set(found)) < len(found):
        raise InputError(f"{twice or 'a file'} is given twice")
    return found


def _is_ours(inside: Path) -> bool:
    return inside.suffix.lower() in PARQUET and not any(part.startswith(("_", ".")) for part in inside.parts)


def _at_address(path: str) -> list[str]:
    import pyarrow.fs as fs

    try:
        system, inside = fs.FileSystem.from_uri(path)
        info = system.get_file_info(inside)
        if info.type == fs.FileType.NotFound:
            raise InputError(f"there is no file {path}")
        if info.type == fs.FileType.File:
            return [path]
        start = path[: len(path) - len(inside)] if path.endswith(inside) else f"{path.split('://')[0]}://"
        below = system.get_file_info(fs.FileSelector(inside, recursive=True))
    except (OSError, ValueError):
        raise InputError(f"{path} cannot be reached: expected an address that pyarrow can open") from None
    files = sorted(one.path for one in below if one.type == fs.FileType.File)
    return [start + file for file in files if _is_ours(Path(file[len(inside) :].lstrip("/")))]
