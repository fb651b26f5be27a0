"""Health of a collector: its database answers, the last write succeeded, and answers can be computed.

A database that hangs is the worst case: every request that touches it would wait as long as the first. So after the
first call that times out all others are refused at once, while a thread tries until the database answers again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from veil.collector.monitoring.logs import log
from veil.collector.store.base import Store
from veil.errors import ServiceError, StoreError, StoreFullError, StoreReadOnlyError, StoreTimeoutError

_RETRY_SECONDS = 5
_TRY_SECONDS = 1.0


class Health:
    """The health of a collector, from the outcomes of its calls to the database.

    `check` refuses while the database hangs. `tries` is the interval in seconds at which it is tried again.
    """

    def __init__(
        self, store: Store, answering: Callable[[], None] | None = None, *, tries: float = _TRY_SECONDS
    ) -> None:
        self._store, self._answering, self._tries = store, answering or count_something, tries
        self._lock, self._compiling = threading.Lock(), threading.Lock()
        self._hangs = False
        self._failed_write = False
        self._unwritten = 0  # bytes of the largest write that failed since the last success
        self._answers: bool | None = None
        self._stopping = threading.Event()

    @property
    def hangs(self) -> bool:
        """Whether the database did not answer in time, and has not answered since."""
        return self._hangs

    def check(self) -> None:
        """Refuse at once while the database hangs."""
        if self._hangs:
            raise _refusal("the database does not answer in time: nothing was acknowledged, send it again later")

    def wrote(self, problem: StoreError | None = None, size: int = 0) -> None:
        """Record how the last write went, and how many bytes were to be written."""
        self._failed_write = problem is not None
        self._unwritten = 0 if problem is None else max(self._unwritten, size)
        if problem is not None:
            self.failed(problem)

    def failed(self, problem: StoreError) -> None:
        """A call to the database failed; one that timed out closes the way until the database answers again."""
        if isinstance(problem, StoreFullError):
            self._failed_write = True
        if not isinstance(problem, StoreTimeoutError):
            return
        with self._lock:
            if self._hangs or self._stopping.is_set():
                return
            self._hangs = True
        log("error", "database-hangs", problem)
        threading.Thread(target=self._try_again, name="veil-health", daemon=True).start()

    def check_store(self) -> None:
        """Refuse unless the database answers and the last write succeeded, or one as large succeeds now. Blocks."""
        self.check()
        try:
            self._store.ping()
            if self._failed_write:
                self._store.probe(self._unwritten)
                self._failed_write, self._unwritten = False, 0
        except StoreReadOnlyError:
            raise _refusal("the database takes no writes: its server is a standby, or was demoted to one") from None
        except StoreFullError:
            raise _refusal("the database takes no writes: the disk is full") from None
        except StoreError as problem:
            self.failed(problem)
            what = "the last write to the database failed" if self._failed_write else "the database cannot be used"
            raise _refusal(what) from None

    def check_answers(self) -> None:
        """Refuse unless answers can be computed. Blocks: the first time it may have to compile kernels."""
        if not self.prepare_answers():
            raise _refusal("answers cannot be computed: see the log")

    def stop(self) -> None:
        """Try no more."""
        self._stopping.set()

    def prepare_answers(self) -> bool:
        """Load or compile the kernels of answers. Return False, and log why, if answers cannot be computed."""
        with self._compiling:  # one of several who ask at the same time compiles
            if self._answers is None:
                try:
                    self._answering()
                    self._answers = True
                except Exception as problem:  # whatever it is, analysts would meet it
                    log("error", "cannot-answer", problem)
                    self._answers = False
            return self._answers

    def _try_again(self) -> None:
        while not self._stopping.wait(self._tries):
            try:
                self._store.probe()
            except StoreError:
                continue
            self._hangs = False
            log("info", "database-answers")
            return


def count_something() -> None:
    """Count a report as answers do, with compiled kernels: raises whatever an analyst would meet."""
    from veil.entropy import SeededForExperiments
    from veil.mechanisms import OLH
    from veil.results.render.files import document
    from veil.study import study_from_json
    from veil.survey import Survey

    survey = Survey(OLH(1.0, 4))
    tally = survey.tally(survey.randomize([0, 1], SeededForExperiments(0)))
    study = study_from_json(survey.to_bytes())
    document(study.read(tally), 0.95)  # type: ignore[attr-defined]  # a bare task is a study of one round


def _refusal(message: str) -> ServiceError:
    return ServiceError(503, "unavailable", message, retry_after=_RETRY_SECONDS)
