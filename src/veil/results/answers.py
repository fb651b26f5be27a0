"""The results of several questions of one survey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Answers"]


@dataclass(frozen=True, eq=False)
class Answers(Sequence[Any]):
    """One result per question that anybody answered, with the questions' numbers."""

    results: tuple[Any, ...]
    questions: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Any) -> Any:
        return self.results[index]
