"""The papers' claims as the reproductions judge them; the ones that are promised are required, the others reported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from acceptance.post_cells import one_blas_thread
from veil_papers import EXPERIMENTS
from veil_papers.common.exhibits import Claim, Setting
from veil_papers.common.writing import commit, default_folder, write
from veil_papers.datasets import data_folder

Rows = list[tuple[str, str, str]]


def claims_of(
    experiment: str, changes: Mapping[str, Any] | None = None, *, sample_too: bool = False
) -> tuple[Claim, ...]:
    """All claims of a reproduction. Without changes of its plan it is run in full, and its page is written.

    With `sample_too` the page is written of a sample as well, which it says.
    """
    stamp = commit()
    with one_blas_thread():
        made = EXPERIMENTS[experiment](Setting(data=data_folder(), changes=changes or {}))
    if changes is None or sample_too:
        write(made, default_folder(experiment), stamp)
    return made.claims


def judge(claims: tuple[Claim, ...], required: tuple[str, ...]) -> tuple[Rows, bool]:
    """Every claim with its verdict. Those whose words match a required pattern must hold, and each must match some."""
    rows, passed = [], True
    for claim in claims:
        needed = any(re.search(pattern, claim.says, re.IGNORECASE) for pattern in required)
        rows.append((claim.says, f"{claim.verdict(quick=False)}: {claim.measured}", "holds" if needed else ""))
        passed = passed and (claim.holds or not needed)
    for pattern in required:
        if not any(re.search(pattern, claim.says, re.IGNORECASE) for claim in claims):
            rows.append((f"a claim about {pattern!r}", "there is none", "one that holds"))
            passed = False
    return rows, passed
