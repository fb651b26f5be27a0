"""The part of the package's description that is computed; everything else is in pyproject.toml.

In the repository the README links to files beside it. Shown anywhere else, as on a package index, such links lead
nowhere, so the package's description has the addresses of the same files in the repository, at this version.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def description(readme: str, repository: str, version: str) -> str:
    """The README with absolute links: to files as the repository shows them, to folders as it lists them."""

    def absolute(link: re.Match[str]) -> str:
        shown = "tree" if (ROOT / link[1]).is_dir() else "blob"
        return f"{repository}/{shown}/v{version}/{link[1]}"

    return LINK.sub(absolute, readme)


def stated_version() -> str:
    """The version as the package states it, read without importing the package."""
    source = (ROOT / "src" / "veil" / "version.py").read_text(encoding="utf-8")
    return next(line.split('"')[1] for line in source.splitlines() if line.startswith("VERSION = "))


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    setup(
        long_description=description(
            (ROOT / "README.md").read_text(encoding="utf-8"), project["urls"]["Repository"], stated_version()
        ),
        long_description_content_type="text/markdown",
    )
