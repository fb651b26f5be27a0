"""`extras.py install '.[sql]'`: checks what a page of the documentation asks pip for, without installing anything."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    command, asked = (word for word in sys.argv[1:] if word != "-e")
    found = re.fullmatch(r"\.(?:\[([\w,]+)\])?", asked)
    assert command == "install", command
    assert found is not None, f"{asked}: there is no other place to install it from than a clone"
    assert {*filter(None, (found[1] or "").split(","))} <= set(project["optional-dependencies"]), asked
