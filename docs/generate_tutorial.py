"""Runs examples/tutorial.ipynb in a fresh kernel, and stores what its cells print and draw.

`python docs/generate_tutorial.py [FILE]` does it. Change the cells in the notebook itself. A test runs it, too, and
compares what is printed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "examples" / "tutorial.ipynb"
_LIMIT = 600  # seconds, for a cell on a busy machine


def executed(path: Path = PAGE) -> Any:
    """The notebook, run from its first cell to its last in a kernel of its own and an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as empty:
        resources = {"metadata": {"path": empty}}
        NotebookClient(
            notebook, timeout=_LIMIT, startup_timeout=_LIMIT, resources=resources, record_timing=False
        ).execute()
    return notebook


def printed(notebook: Any) -> list[list[str]]:
    """What each cell of code prints and shows as text; of pictures, that there is one."""
    return [[_told(output) for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


def _told(output: Any) -> str:
    if output.output_type == "stream":
        return f"{output.name}: {output.text}"
    if output.output_type == "error":
        return f"error: {output.ename}"
    shown = output.data
    return "a picture" if "image/png" in shown else str(shown.get("text/html", shown.get("text/plain")))


if __name__ == "__main__":
    import nbformat

    nbformat.write(executed(), sys.argv[1] if len(sys.argv) > 1 else PAGE)
