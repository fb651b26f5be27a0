"""Writes vectors/*.json: bytes that every language agrees on, and bytes that must be refused.

Run `.venv/bin/python tests/make_vectors.py` after a wanted change of the format; tests/unit/project/test_vectors.py
notices any other.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "vectors"


def main() -> None:
    """Rewrite the folder."""
    from vector_recipes import build, text_of  # beside this script; pytest collects it from elsewhere

    FOLDER.mkdir(exist_ok=True)
    for name, document in build().items():
        (FOLDER / name).write_text(text_of(document), encoding="ascii")


if __name__ == "__main__":
    main()
