"""The page about data says what the loaders do; its checksums are those of the files, where there is a folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from docs.generate_data import files_of, loaders, page, used_by

from veil.errors import InputError
from veil_papers import datasets

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    assert page() == (DOCS / "data.md").read_text(encoding="utf-8"), "python docs/generate_data.py"


def test_every_loader_reads_files_of_the_page_and_every_file_has_a_loader() -> None:
    read = {name: files_of(loader) for name, loader in loaders().items()}
    assert len(read) >= 18
    assert all(read.values()), "a loader that asks for no file, or whose refusal does not name it"
    known = {file.name for file in datasets.FILES}
    assert set().union(*read.values()) == known
    told = (DOCS / "data.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### (\S+)$", told, re.MULTILINE)) == known
    for name in read:
        assert f"| `{name}` |" in told
    assert len({file.sha256 for file in datasets.FILES}) == len(datasets.FILES)


def test_every_reproduction_that_reads_data_is_named() -> None:
    used = {name: used_by(name) for name in loaders()}
    assert "numeric" in used["income"]
    assert "sql" in used["census_like"]
    assert used["adult"] == ["marginals"]  # a string "adult" elsewhere does not count


def test_checksums(tmp_path: Path) -> None:
    assert set(datasets.check_files(tmp_path).values()) == {"missing"}
    (tmp_path / "retail.parquet").write_bytes(b"another")
    assert datasets.check_files(tmp_path)["retail.parquet"] == "another"
    if os.environ.get("VEIL_DATA"):
        assert set(datasets.check_files().values()) == {"the same"}
    else:
        with pytest.raises(InputError, match="VEIL_DATA"):
            datasets.check_files()
