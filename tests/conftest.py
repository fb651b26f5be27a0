"""The same examples of Hypothesis every time, and no deadline for anything, because a slow machine is not a bug."""

from __future__ import annotations

import httpx
from hypothesis import settings
from tests.patience import LIMIT

settings.register_profile("veil", deadline=None, derandomize=True)
settings.load_profile("veil")
# httpx gives up after five seconds; an answer takes longer where a collector compiles its kernels beside other work
for _call in (httpx.Client.__init__, httpx.request, httpx.get, httpx.post, httpx.options):
    _call.__kwdefaults__["timeout"] = httpx.Timeout(LIMIT)
