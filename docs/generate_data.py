"""Write docs/data.md from the catalogue and the loaders: `python docs/generate_data.py [FILE]`.

A test compares the page with the loaders and, if VEIL_DATA is set, the files with their checksums.
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
from veil.errors import InputError
from veil_papers import EXPERIMENTS, datasets

_HEAD = """\
# Data

Written by `python docs/generate_data.py` from `veil_papers.datasets.FILES` and the loaders; change it there.

The reproductions run on public data, and one more file is there for your own experiments. The repository contains none
of it, and nothing is downloaded. Put the files below into a folder, and name it with `veil reproduce NAME --data
FOLDER`, with the environment variable VEIL_DATA, or as the first argument of a loader of `veil_papers.datasets`, a
package that is installed with veil. **Without a folder every loader uses a stand-in**: made-up data of about the same
size and shape, the same in every run. Results say which of the two they come from (`origin`, `stand_in`); figures on
stand-ins are indicative. If the folder lacks a file, its loader raises an error and does not use the stand-in.

`veil_papers.datasets.check_files(folder)` compares the checksums with those of the files that the published figures
were made with. A file that you make anew from its origin has another checksum, and serves as well if it has the same
columns and rows.

Licences are those of the data's owners, as far as they state any. Ask them before you pass files on.
"""


def loaders() -> dict[str, Any]:
    """Return the loaders that read a file, by name."""
    return {
        name: function
        for name, function in inspect.getmembers(datasets, inspect.isfunction)
        if "folder" in inspect.signature(function).parameters and name not in ("check_files", "data_folder")
    }


def files_of(loader: Any) -> set[str]:
    """Return the files that a loader looks for in a folder."""
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
    """Return the reproductions whose code names a loader."""
    return sorted(experiment for experiment, names in _named_by().items() if loader in names)


@cache
def _named_by() -> dict[str, set[str]]:
    """Return the names that each reproduction imports from veil_papers.datasets."""
    home, found = Path(veil_papers.__file__).parent, {name: set[str]() for name in EXPERIMENTS}
    for path in sorted(home.glob("*/**/*.py")):
        experiment = path.relative_to(home).parts[0].replace("_", "-")
        if experiment in found:
            found[experiment] |= _named(ast.parse(path.read_text(encoding="utf-8")))
    return found


def _named(tree: ast.AST) -> set[str]:
    """Return the names that a module imports from veil_papers.datasets."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("veil_papers.datasets"):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "datasets":
            names.add(node.attr)
    return names


def _stand_in(loader: Any) -> str:
    """Return the description of the stand-in in a loader's docstring."""
    told = re.search(
        r"Without\s+a\s+folder\s+the\s+stand-in\s+(.*?)(?=\n\s*\n|\n\s*>>>|$)", inspect.getdoc(loader), re.DOTALL
    )
    if told is None:
        raise ValueError(f"the docstring of {loader.__name__} does not say what its stand-in is")
    return " ".join(told.group(1).split()).removesuffix(".")


def page() -> str:
    """Return the page."""
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
        rows.append(f"| `{name}` | {', '.join(used_by(name)) or 'none: for your own experiments'} | {_stand_in(one)} |")
    parts.append("\n".join(rows) + "\n")
    parts.append(
        "`beta_numbers`, `beta_people`, `bimodal_numbers`, `uniform_numbers`, `exponential_bits`, `zipf_people` and"
        " `synthetic_baskets` are made by\nformulas, of which the papers give most: they read no file.\n"
    )
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("data.md").write_text(page(), encoding="utf-8")
