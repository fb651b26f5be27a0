"""Ceilings of the figures of wording and complexity: recorded for each file, compared as totals, only ever lowered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.house.figures import LIMITED, TREES, Place, by_file, limited, read

ROOT = Path(__file__).resolve().parents[3]
CEILINGS = ROOT / "tests" / "fixtures" / "house" / "ceilings.json"

Counts = Mapping[str, Mapping[str, int]]


def recorded() -> dict[str, dict[str, int]]:
    """Return the recorded number of places of each figure in each file that had any."""
    counts: dict[str, dict[str, int]] = json.loads(CEILINGS.read_text(encoding="utf-8"))
    return counts


def excess(places: Mapping[str, Sequence[Place]], ceilings: Counts) -> str:
    """Return what is above its ceiling and in which files, or an empty text."""
    lines, now = list[str](), by_file(places)
    for name in LIMITED:
        total, ceiling = sum(now[name].values()), sum(ceilings[name].values())
        if total > ceiling:
            lines.append(
                f"{name.replace('_', ' ')}: expected at most {ceiling}, got {total}; files with more than before:"
            )
            for file, count in now[name].items():
                before = ceilings[name].get(file, 0)
                if count > before:
                    lines.append(f"    {TREES[0]}/{file}: {before} before, {count} now")
                    lines += [f"        line {p.line}: {p.text[:80]}" for p in places[name] if p.file == file]
    if lines:
        lines.append("All places: python -m tests.support.house -v")
    return "\n".join(lines)


def lower(checkout: Path) -> int:
    """Record the figures of a checkout as ceilings, where none of them is above its ceiling."""
    places = limited(read(checkout / TREES[0]))
    if CEILINGS.exists() and (problem := excess(places, recorded())):
        print(f"not recorded, because ceilings only fall:\n{problem}")
        return 1
    CEILINGS.parent.mkdir(parents=True, exist_ok=True)
    CEILINGS.write_text(json.dumps(by_file(places), indent=1) + "\n", encoding="utf-8")
    print(*(f"{name}: {len(places[name])}" for name in LIMITED), sep="\n")
    return 0
