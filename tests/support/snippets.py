"""The code on pages of the documentation: what there is, and how a page is followed as a reader would.

Blocks fenced as python or sh are code that runs. They are pasted in order: Python into one interpreter, statement by
statement as its prompt takes them, the rest into shells, all of them in one folder that was empty. A block that cannot
run says so in its first line, for readers too. Other languages are data, but for those that a test of their own runs.
"""

from __future__ import annotations

import codeop
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from tests.patience import LIMIT

NOT_RUN = "not run by the tests"
RUN = ("python", "sh")
DATA = ("text", "json", "toml", "ini", "nginx", "sql")
_FENCED = re.compile(r"^( *)```([^\n`]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)  # in a list, it is indented
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
        return self.language in RUN and NOT_RUN not in self.code.partition("\n")[0]


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page."""
    return [
        Block(m[2], "".join(line.removeprefix(m[1]) for line in m[3].splitlines(keepends=True)), _line(text, m.start()))
        for m in _FENCED.finditer(text)
    ]


def _line(text: str, fence: int) -> int:
    return text.count("\n", 0, fence) + 2


def pasted(page: str, block: Block) -> Iterator[CodeType]:
    """The statements of Python that was pasted at a prompt, where a SyntaxError is raised as it would be there.

    A line that does not go on a block ends it only after an empty one.
    """
    compiler, waiting = codeop.CommandCompiler(), list[str]()
    for number, line in enumerate([*block.code.splitlines(), ""], start=block.line):
        waiting.append(line)
        before = "\n" * (number - len(waiting))  # so that tracebacks name lines of the page
        statement = compiler(before + "\n".join(waiting), page, "single")
        if statement is not None:
            yield statement
            waiting.clear()


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
            for statement in pasted(page, block):
                exec(statement, names)
            continue
        # What runs in the background ends with the block, as it would with the reader's shell; the next block may start
        # it again on the same port.
        script = f"set -euo pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true; wait' EXIT\n{block.code}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            sys.exit(f"{where}: exit code {done.returncode}\n{block.code}\n{done.stdout}\n{done.stderr}")


def main() -> None:
    """Follow the pages that stand in the arguments, as JSON."""
    os.environ.setdefault("MPLBACKEND", "agg")
    for text in sys.argv[1:]:
        name, found = json.loads(text)
        follow(name, [Block(*one) for one in found])
