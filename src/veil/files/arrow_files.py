"""Arrow and Parquet files: their endings, opening them, and one clear error for a file that cannot be read."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from veil.errors import InputError, WireError

PathLike = str | os.PathLike[str]
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")


def create_file(path: PathLike) -> Any:
    """Return a new file for Arrow to write. The name may hold any bytes: pyarrow takes some text for an address."""
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path), "wb")


@contextlib.contextmanager
def readable(path: PathLike, kind: str) -> Iterator[None]:
    """Turn whatever is wrong with a file of `kind`, Arrow or Parquet, into one clear error."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (PermissionError, IsADirectoryError):
        raise InputError(f"{path} cannot be opened as a file") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError, OverflowError):  # damage shows in all of them
        raise WireError(f"{path} is not a complete {kind} file") from None


@contextlib.contextmanager
def open_parquet(path: PathLike) -> Iterator[Any]:
    """Yield a `pyarrow.parquet.ParquetFile` of exactly this file. The name may hold any bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pa.OSFile(os.fsencode(path), "rb") as source, pq.ParquetFile(source) as file:
        yield file


@contextlib.contextmanager
def open_arrow(path: Path) -> Iterator[Any]:
    """An Arrow file, opened; whatever is wrong with it is one clear error."""
    import pyarrow as pa

    with readable(path, "Arrow"), pa.OSFile(os.fsencode(path), "rb") as file, pa.ipc.open_file(file) as reader:
        yield reader


def record_batch(file: Any, index: int) -> Any:
    """One record batch of an open file, checked."""
    import pyarrow as pa

    try:
        batch = file.get_batch(index)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise WireError(f"record batch {index} of the file is damaged") from None
    return batch


def is_address(path: str) -> bool:
    """Whether a path is an address of a file system that is not this machine's, as s3://bucket/key."""
    return "://" in path


@contextlib.contextmanager
def open_parquet_at(path: str) -> Iterator[Any]:
    """Yield a `pyarrow.parquet.ParquetFile` of a path, or of an address such as s3://bucket/key."""
    if not is_address(path):
        with open_parquet(path) as file:
            yield file
        return
    import pyarrow.fs as fs
    import pyarrow.parquet as pq

    system, inside = fs.FileSystem.from_uri(path)
    with system.open_input_file(inside) as source, pq.ParquetFile(source) as file:
        yield file
