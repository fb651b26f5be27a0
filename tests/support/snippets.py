"""The code on pages of the documentation: what there is, and how a page is followed as a reader would.

Blocks fenced as python or sh are code that runs. They are pasted in order: Python into one interpreter, the rest into
shells, all of them in one folder that was empty. A block that cannot run says so in its first line, for readers too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from typing import NamedTuple

from tests.patience import LIMIT

__all__ = ["NOT_RUN", "Block", "blocks", "code_in_disguise", "follow", "main"]

NOT_RUN = "not run by the tests"
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)((?:    .*\n|\n(?=    ))+)")
_LOOKS_LIKE_CODE = re.compile(
    r"^(veil|pip|make|import|from \w[\w.]* import|docker|python3?) |^\w+ = veil\.", re.MULTILINE
)


class Block(NamedTuple):
    """A piece of code, and the line of the page that it begins in."""

    language: str
    code: str
    line: int

    @property
    def runs(self) -> bool:
        return self.language in ("python", "sh") and NOT_RUN not in self.code.partition("\n")[0]


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page."""
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in _FENCED.finditer(text)]


def code_in_disguise(text: str) -> list[str]:
    """Code that is not fenced as code, and would not be run."""
    plain = _FENCED.sub("\n", text)
    indented = [textwrap.dedent(found[1]) for found in _INDENTED.finditer(plain)]
    unnamed = [block.code for block in blocks(text) if not block.language]
    return [code for code in (*indented, *unnamed) if _LOOKS_LIKE_CODE.search(code)]


def follow(page: str, found: list[Block]) -> None:
    """Run the blocks of a page in the current folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in found:
        where = f"{page}, line {block.line}"
        if block.language == "python":
            lines = "\n" * (block.line - 1)  # so that tracebacks name lines of the page
            exec(compile(lines + block.code, page, "exec"), names)
            continue
        # what runs in the background ends with the block, as it would with the reader's shell
        script = f"set -euo pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n{block.code}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            sys.exit(f"{where}: exit code {done.returncode}\n{block.code}\n{done.stdout}\n{done.stderr}")


def main() -> None:
    """Follow the pages that stand in the arguments, as JSON."""
    os.environ.setdefault("MPLBACKEND", "agg")
    for text in sys.argv[1:]:
        name, found = json.loads(text)
        follow(name, [Block(*one) for one in found])
