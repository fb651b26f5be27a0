"""Missing values: refused, left out, or an answer of their own where the study has one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from veil.domain import Categories, Domain
from veil.errors import DomainError, InputError

if TYPE_CHECKING:
    from veil.files.value_file import ValueFile

__all__ = ["Missing", "WithoutMissing", "has_category"]

Missing = Literal["refuse", "skip", "category"]


class WithoutMissing:
    """What becomes of people without a value; `skipped` counts those who were left out.

    None is as the study says: an answer of its own where its domain has one, else refused.
    """

    def __init__(self, missing: Missing | None = None) -> None:
        if missing is not None and missing not in get_args(Missing):
            raise InputError(f"missing values are one of {', '.join(get_args(Missing))}")
        self.missing = missing
        self.skipped = 0

    def of(
        self, file: ValueFile, batches: Iterator[Any], held: Sequence[tuple[str, Domain]], public: Sequence[str]
    ) -> Iterator[Any]:
        """The batches without people who are left out; refuses what is refused, by its place in the file."""
        if self.missing == "category" and not any(has_category(domain) for _, domain in held):
            raise InputError(
                "this study has no answer for a missing value: plan it with --missing category, or leave such people"
                " out with --missing skip"
            )
        for batch in batches:
            yield self._batch(file, batch, held, public)

    def _batch(self, file: ValueFile, batch: Any, held: Sequence[tuple[str, Domain]], public: Sequence[str]) -> Any:
        if self.missing == "skip":
            named = [*(name for name, domain in held if not has_category(domain)), *public]
            lacking = np.logical_or.reduce([_missing(batch, name) for name in named]) if named else None
            if lacking is None or not lacking.any():
                return batch
            self.skipped += int(lacking.sum())
            return batch.filter(~lacking)
        for name, domain in held if self.missing == "refuse" else ():
            lacking = _missing(batch, name)
            if has_category(domain) and lacking.any():
                assert isinstance(domain, Categories)
                first, count = int(np.argmax(lacking)), int(lacking.sum())
                raise file.placed(DomainError(f"expected {domain.expected}; a value is missing", first, count), batch)
        return batch


def has_category(domain: Domain) -> bool:
    """Whether a missing value is an answer of its own."""
    return isinstance(domain, Categories) and domain.missing == "category"


def _missing(batch: Any, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    import pyarrow.compute as pc

    return np.asarray(pc.is_null(batch.column(name), nan_is_null=True).to_numpy(zero_copy_only=False))
