"""`python -m tests.support.house [-v] [--against COMMIT] [--record]`: figures of the source code.

The last line of the figures is a JSON object. figures.py describes what each of them counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.house.ceilings import CEILINGS, ROOT, lower
from tests.support.house.changes import against, checkout_of
from tests.support.house.figures import TREES, concepts, limited, read, repeated_classes, sizes, small, untested

WALKS = Path(__file__).with_name("walks.py")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.house", description="Figures of the source code.")
    parser.add_argument("checkout", nargs="?", type=Path, default=ROOT, help="the checkout to measure (this one)")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the places that are counted")
    parser.add_argument(
        "--against", metavar="COMMIT", help="print a table of the figures of COMMIT and of this checkout"
    )
    parser.add_argument("--record", action="store_true", help=f"lower the ceilings in {CEILINGS.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if options.record:
        return lower(options.checkout)
    if options.against:
        return _compare(options.checkout, options.against)
    return _print(options.checkout, options.verbose)


def _print(checkout: Path, verbose: bool) -> int:
    sources = read(checkout / TREES[0])
    names = untested(sources, checkout / "tests")
    repeated = repeated_classes(sources)
    places = limited(sources) | concepts(sources)
    figures = sizes(sources) | {"classes_twice": len(repeated)}
    figures |= {name: len(several) for name, several in places.items()}
    figures |= {"modules_without_a_test_of_their_name": len(names)}
    if verbose:
        lists = {name: [f"{p.file}:{p.line}: {p.text[:100]}" for p in several] for name, several in places.items()}
        lists |= {"classes_twice": [f"{name} {' '.join(files)}" for name, files in repeated.items()]}
        lists |= {"files_under_80": small(sources), "modules_without_a_test_of_their_name": names}
        for title, lines in lists.items():
            print(f"\n{title}", *lines, sep="\n   ")
    for name, value in figures.items():
        print(f"{name:40} {value:7,}")
    walked = _walk(checkout, verbose)
    print(json.dumps({**figures, "walks": walked}))
    return 0


def _compare(checkout: Path, commit: str) -> int:
    with checkout_of(checkout, commit) as before:
        rows = against(before, checkout)
        earlier, now = (_walk(one, verbose=False, quiet=True) or {} for one in (before, checkout))
    for title in now:
        if title in earlier:
            for name, old, new in zip(("functions", "files"), earlier[title], now[title], strict=True):
                rows.append((f"walk {title}: {name}", old, new, new - old))
    print(f"| figure | {commit} | now | change |\n|---|---:|---:|---:|")
    for title, *cells in rows:
        old_cell, now_cell, change = (f"{cell:,}" if isinstance(cell, int) else cell for cell in cells)
        print(f"| {title} | {old_cell} | {now_cell} | {change} |")
    return 0


def _walk(checkout: Path, verbose: bool, quiet: bool = False) -> dict[str, list[int]] | None:
    """Print the walks of a checkout and return their figures; None where its names differ from those in walks.py."""
    theirs = checkout / WALKS.relative_to(ROOT)
    script = theirs if theirs.exists() else WALKS
    command = [sys.executable, str(script), str(checkout), *(["-v"] if verbose else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"walks: not measured ({done.stderr.strip().splitlines()[-1]})", file=sys.stderr)
        return None
    *lines, figures = done.stdout.splitlines()
    if not quiet:
        print(*lines, sep="\n")
    found: dict[str, list[int]] = json.loads(figures)
    return found


if __name__ == "__main__":
    sys.exit(main())
