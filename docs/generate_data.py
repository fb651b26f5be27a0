"""Writes docs/data.md from the catalogue and the loaders: `python docs/generate_data.py [FILE]`.

A test keeps the page, the loaders and, where VEIL_DATA is set, the files in step.
"""

from __future__ import annotations

import ast
import inspect
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, get_args

import veil_papers
from veil import datasets
from veil.errors import InputError
from veil_papers import EXPERIMENTS

__all__ = ["files_of", "loaders", "page", "used_by"]

_HEAD = """\
# Data

Written by `python docs/generate_data.py` from `veil.datasets.FILES` and the loaders; change it there.

The reproductions run on public data, and one more file is there for trials of your own. None of it is in this
repository, and nothing is downloaded: put the files below
into a folder, and name it with `veil reproduce NAME --data FOLDER`, with the environment variable VEIL_DATA, or as
the first argument of a loader of `veil.datasets`. **Without a folder every loader uses a stand-in**: made-up data of
about the same size and shape, the same in every run. Results say which of the two they are from (`origin`,
`stand_in`); figures on stand-ins are indicative. A folder that lacks a file is refused, rather than filled with a
stand-in.

`veil.datasets.check_files(folder)` compares the checksums. They are those of the files that the published figures were
made with: a file that you make anew from its origin has another one, and serves as well where it has the same columns
and rows.

Licences are those of the data's owners, as far as they state any. Whoever passes files on should ask there.
"""


def loaders() -> dict[str, Any]:
    """The loaders that read a file, by name."""
    found = {name: getattr(datasets, name) for name in datasets.__all__}
    return {
        name: one
        for name, one in found.items()
        if inspect.isfunction(one)
        and "folder" in inspect.signature(one).parameters
        and name not in ("check_files", "data_folder")
    }


def files_of(loader: Any) -> set[str]:
    """The files that a loader asks an empty folder for."""
    sources = get_args(datasets.Census) if "source" in inspect.signature(loader).parameters else [None]
    asked = set()
    with tempfile.TemporaryDirectory() as empty:
        for source in sources:
            try:
                loader(empty, **({} if source is None else {"source": source}))
            except InputError as refused:
                asked |= set(re.findall(r"([\w.]+): docs/data\.md", str(refused)))
    return asked


def used_by(loader: str) -> list[str]:
    """The reproductions whose code names a loader."""
    return sorted(experiment for experiment, names in _named_by().items() if loader in names)


@cache
def _named_by() -> dict[str, set[str]]:
    """What each reproduction takes from veil.datasets."""
    home, found = Path(veil_papers.__file__).parent, {name: set[str]() for name in EXPERIMENTS}
    for path in sorted(home.glob("*/**/*.py")):
        experiment = path.relative_to(home).parts[0].replace("_", "-")
        if experiment in found:
            found[experiment] |= _named(ast.parse(path.read_text(encoding="utf-8")))
    return found


def _named(tree: ast.AST) -> set[str]:
    """What a module takes from veil.datasets."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("veil.datasets"):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "datasets":
            names.add(node.attr)
    return names


def _stand_in(loader: Any) -> str:
    """What a loader says about its stand-in."""
    told = re.search(
        r"Without\s+a\s+folder\s+the\s+stand-in\s+(.*?)(?=\n\s*\n|\n\s*>>>|$)", inspect.getdoc(loader), re.DOTALL
    )
    if told is None:
        raise ValueError(f"the docstring of {loader.__name__} does not say what its stand-in is")
    return " ".join(told.group(1).split()).removesuffix(".")


def page() -> str:
    """The whole page."""
    known = {name: files_of(one) for name, one in loaders().items()}
    parts = [_HEAD, "## Files\n"]
    for file in datasets.FILES:
        readers = ", ".join(f"`{name}`" for name in sorted(known) if file.name in known[name])
        parts.append(
            f"### {file.name}\n\n"
            f"- holds: {file.holds}\n- from: {file.origin}\n- licence: {file.licence}\n- read by: {readers}\n"
            f"- SHA-256: `{file.sha256}`\n"
        )
    parts.append("## Loaders, and what stands in for a file\n")
    rows = ["| loader | reproductions | without a folder, the stand-in |", "|---|---|---|"]
    for name, one in sorted(loaders().items()):
        rows.append(f"| `{name}` | {', '.join(used_by(name)) or 'none: for trials of your own'} | {_stand_in(one)} |")
    parts.append("\n".join(rows) + "\n")
    parts.append(
        "`beta_numbers`, `beta_people`, `bimodal_numbers`, `uniform_numbers`, `exponential_bits`, `zipf_people` and"
        " `synthetic_baskets` are made by\nformulas, of which the papers give most: they read no file.\n"
    )
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("data.md").write_text(page(), encoding="utf-8")
