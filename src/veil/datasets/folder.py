"""Where the data lies."""

from __future__ import annotations

import os
from pathlib import Path

from veil.errors import InputError

__all__ = ["data_file", "data_folder"]


def data_folder(folder: str | Path | None = None) -> Path | None:
    """The folder with the data: the argument, else VEIL_DATA, else none."""
    named = folder or os.environ.get("VEIL_DATA")
    if not named:
        return None
    path = Path(named)
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    return path


def data_file(folder: str | Path | None, name: str) -> Path | None:
    """The file in the data folder; None where there is no folder."""
    found = data_folder(folder)
    if found is None:
        return None
    path = found / name
    if not path.is_file():
        raise InputError(f"there is no file {path}: docs/data.md says where it comes from")
    return path
