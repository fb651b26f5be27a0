"""The same examples of Hypothesis every time, and no deadline for anything, because a slow machine is not a bug."""

from __future__ import annotations

import os
import sys
from typing import Any

import httpx
import pytest
from hypothesis import settings
from tests.patience import LIMIT
from tests.support.durations import Durations, Recorder

settings.register_profile("veil", deadline=None, derandomize=True)
settings.load_profile("veil")
# somebody's own settings and data folder must not decide what is tested: everything runs on the stand-ins
for _name in {name for name in os.environ if name.startswith("VEIL_")} - {"VEIL_CHROMIUM", "VEIL_THREADS"}:
    del os.environ[_name]
# processes that tests start compile what they import once, not each for itself
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# workers share the cores; threads of BLAS beside them would only wait for each other, busily
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# httpx gives up after five seconds; an answer takes longer where a collector compiles its kernels beside other work
for _call in (httpx.Client.__init__, httpx.request, httpx.get, httpx.post, httpx.options):
    _call.__kwdefaults__["timeout"] = httpx.Timeout(LIMIT)

# Workers take one file after the other (`--dist loadfile`), so that what a file prepares is prepared once; all files
# about Spark go together, because its session takes half a minute to start. Those that take longest come first: a long
# one at the end would keep one worker busy while the others have nothing left to do.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", action="store_true", help="write tests/durations.json, as CI does")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-durations", default=False) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())


@pytest.hookimpl(optionalhook=True)  # there are other ways to run tests
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whole files to workers, and all of Spark to one."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith("tests/spark/") else super()._split_scope(nodeid)

    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow tests and put long files first; within a file the order stays as it is."""
    Durations.load().arrange(items, config.rootpath)
