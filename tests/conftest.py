"""The same examples of Hypothesis every time, and no deadline for anything, because a slow machine is not a bug."""

from __future__ import annotations

import os

import httpx
from hypothesis import settings
from tests.patience import LIMIT

settings.register_profile("veil", deadline=None, derandomize=True)
settings.load_profile("veil")
# somebody's own settings and data folder must not decide what is tested: everything runs on the stand-ins
for _name in {name for name in os.environ if name.startswith("VEIL_")} - {"VEIL_CHROMIUM", "VEIL_THREADS"}:
    del os.environ[_name]
# workers share the cores; threads of BLAS beside them would only wait for each other, busily
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# httpx gives up after five seconds; an answer takes longer where a collector compiles its kernels beside other work
for _call in (httpx.Client.__init__, httpx.request, httpx.get, httpx.post, httpx.options):
    _call.__kwdefaults__["timeout"] = httpx.Timeout(LIMIT)
