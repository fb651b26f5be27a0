"""The part of the package's description that is computed; everything else is in pyproject.toml.

In the repository the README links to files beside it. Shown anywhere else, as on a package index, such links lead
nowhere, so the package's description has the addresses of the same files in the repository, at this version. As long as
the project has no address, it has the text of each link and the name of the file instead.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
LINK = re.compile(r"\[([^\[\]]+)\]\((?!\w+:|#)([^)#\s]+)([^)\s]*)\)")


def description(readme: str, repository: str | None, version: str) -> str:
    """Return the README with links that work anywhere.

    Links to files become absolute, as the repository shows files and lists folders. Without a repository they become
    text with the name of the file, which is in the source archive.
    """

    def absolute(link: re.Match[str]) -> str:
        text, path, anchor = link.groups()
        if repository is None:
            return f"`{path}`" if text == path else f"{text} (`{path}`)"
        shown = "tree" if (ROOT / path).is_dir() else "blob"
        return f"[{text}]({repository}/{shown}/v{version}/{path}{anchor})"

    return LINK.sub(absolute, readme)


def stated_version() -> str:
    """The version as the package states it, read without importing the package."""
    source = (ROOT / "src" / "veil" / "version.py").read_text(encoding="utf-8")
    return next(line.split('"')[1] for line in source.splitlines() if line.startswith("VERSION = "))


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    setup(
        long_description=description(
            (ROOT / "README.md").read_text(encoding="utf-8"),
            project.get("urls", {}).get("Repository"),
            stated_version(),
        ),
        long_description_content_type="text/markdown",
    )
