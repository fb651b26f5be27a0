"""No noise is drawn twice: sources across forks, threads, pools of processes, copy, deepcopy and pickle."""

from __future__ import annotations

import copy
import ctypes
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.patience import LIMIT

from veil import GRR, Ledger, simulate
from veil.device.outbox import Outbox
from veil.entropy import Batch, Enumerated, Keyed, SeededForExperiments, Source, System, Words
from veil.errors import EntropyError, LedgerError

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def chunk_of(source: Source) -> Source:
    return next(iter(source.chunks(1)))[1]


SOURCES: dict[str, Callable[[], Source]] = {
    "System": System,
    "Batch": Batch,
    "SeededForExperiments": lambda: SeededForExperiments(1),
    "Keyed": lambda: Keyed(bytes(32)),
    "Words": lambda: Words(bytes(800)),
    "Enumerated": lambda: Enumerated([]),
    "chunk of Batch": lambda: chunk_of(Batch()),
    "chunk of SeededForExperiments": lambda: chunk_of(SeededForExperiments(1)),
    "replay of SeededForExperiments": lambda: next(SeededForExperiments(1).replays(1)())[1],
}
FIXED = ["SeededForExperiments", "Keyed", "Words", "chunk of SeededForExperiments", "replay of SeededForExperiments"]


@pytest.mark.parametrize("name", SOURCES)
def test_sources_refuse_copy_deepcopy_and_pickle(name: str) -> None:
    source = SOURCES[name]()
    for double in (copy.copy, copy.deepcopy, pickle.dumps, lambda one: copy.deepcopy({"inside": [one]})):
        with pytest.raises(EntropyError, match="cannot be copied or pickled"):
            double(source)


def hex_words(source: Source, count: int = 2) -> list[str]:
    """Return words as text. Two words: 2^-128 is the chance that two honest draws are equal."""
    return [source.words(count).tobytes().hex()]


def in_child(work: Callable[[], list[str]], fork: Callable[[], int] = os.fork) -> list[str]:
    """Return what `work` returns in a forked child; a child that hangs or fails fails the test."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: this process has threads
        child = fork()
    if not child:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(int(LIMIT))
            os.write(into, " ".join(work()).encode())
            os._exit(0)
        except BaseException as problem:
            os.write(2, repr(problem).encode())
        finally:
            os._exit(1)
    os.close(into)
    with os.fdopen(out) as answer:
        words = answer.read().split()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return words


@needs_fork
@pytest.mark.parametrize("name", ["System", "Batch", "chunk of Batch"])
@pytest.mark.parametrize("begun", [False, True])
def test_forked_children_draw_independent_noise(name: str, begun: bool) -> None:
    source = SOURCES[name]()
    if begun:
        source.words(3)
    drawn = in_child(lambda: hex_words(source) + in_child(lambda: hex_words(source)))  # a child, and its own child
    drawn += in_child(lambda: hex_words(source))
    drawn += hex_words(source)
    assert len(set(drawn)) == len(drawn) == 4


@needs_fork
def test_chunks_taken_in_forked_children_are_new() -> None:
    source = Batch()
    waiting = source.chunks(3 * 65_536)
    next(waiting)

    def rest() -> list[str]:
        return [word for chunks in (waiting, source.chunks(1)) for _, chunk in chunks for word in hex_words(chunk)]

    drawn = in_child(rest) + in_child(rest) + rest()
    assert len(set(drawn)) == len(drawn) == 9


@needs_fork
@pytest.mark.parametrize("name", FIXED)
def test_fixed_draws_are_refused_in_a_forked_child(name: str) -> None:
    source = SOURCES[name]()
    source.words(1)

    def refused() -> list[str]:
        with pytest.raises(EntropyError, match="made in another process"):
            source.words(1)
        return ["refused"]

    assert in_child(refused) == ["refused"]
    expected = SOURCES[name]()
    expected.words(1)
    assert hex_words(source) == hex_words(expected)  # the parent goes on as if nothing had happened


@needs_fork
def test_drawing_zero_words_works_in_a_forked_child() -> None:
    """A view that draws nothing is given a source without words, also in a forked worker of the collector."""
    source = Words(b"")
    assert in_child(lambda: [str(len(source.words(0)))]) == ["0"]


@needs_fork
def test_replays_and_chunks_of_a_seed_are_refused_in_a_forked_child() -> None:
    source = SeededForExperiments(1)
    again = source.replays(1)

    def refused() -> list[str]:
        for chunks in (again(), source.chunks(1)):
            with pytest.raises(EntropyError, match="made in another process"):
                next(chunks)
        return hex_words(SeededForExperiments(1))  # made here: allowed

    assert in_child(refused) == hex_words(SeededForExperiments(1))


@needs_fork
def test_a_process_id_that_is_used_again_repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    number = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: number)
    source = Batch()
    chunk = chunk_of(source)
    drawn = in_child(lambda: hex_words(source) + hex_words(chunk)) + hex_words(source) + hex_words(chunk)
    assert len(set(drawn)) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="calls the C library's fork")
def test_a_fork_by_other_code_than_pythons_repeats_nothing() -> None:
    source = Batch()
    chunk = chunk_of(source)
    fork = ctypes.PyDLL(None).fork  # runs none of Python's hooks
    drawn = in_child(lambda: hex_words(source) + hex_words(chunk), fork) + hex_words(source) + hex_words(chunk)
    assert len(set(drawn)) == 4


@needs_fork
@pytest.mark.parametrize("draws", ["source", "chunk"])
def test_a_fork_while_a_thread_draws_does_not_block_the_child(monkeypatch: pytest.MonkeyPatch, draws: str) -> None:
    """The thread is inside a draw, and holds the source's lock, at the very moment of the fork."""
    source = Batch()
    drawing = source if draws == "source" else chunk_of(source)
    inside, leave = threading.Event(), threading.Event()
    plain = Batch.words.__globals__["_stream_words"]

    def slow(stream: object, count: int) -> object:
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            assert leave.wait(LIMIT)
        return plain(stream, count)

    monkeypatch.setitem(Batch.words.__globals__, "_stream_words", slow)
    drawn: list[str] = []
    thread = threading.Thread(target=lambda: drawn.extend(hex_words(drawing)))
    thread.start()
    assert inside.wait(LIMIT)
    drawn_by_child = in_child(lambda: hex_words(drawing) + hex_words(chunk_of(source)))
    leave.set()
    thread.join()
    assert len({*drawn, *drawn_by_child}) == 3


@needs_fork
def test_forks_among_threads_that_draw_and_compute() -> None:
    """Threads draw, take chunks and use the pool of threads, while children are forked that do the same."""
    source, done = Batch(), threading.Event()
    drawn: list[list[str]] = [[] for _ in range(3)]

    def work() -> list[str]:
        parts = source.each_chunk(3 * 65_536, lambda rows, chunk: hex_words(chunk)[0])  # three chunks, side by side
        return [*hex_words(source), *parts]

    def keep_on(mine: list[str]) -> None:
        while not done.is_set():
            mine.extend(work())

    threads = [threading.Thread(target=keep_on, args=(mine,)) for mine in drawn]
    for thread in threads:
        thread.start()
    children = [word for _ in range(10) for word in in_child(work)]
    done.set()
    for thread in threads:
        thread.join()
    every = [*children, *(word for mine in drawn for word in mine)]
    assert len(children) == 40
    assert len(set(every)) == len(every)


DRAWING = """
    from veil.entropy import Batch

    SOURCE = Batch()  # a forked worker, and one of a fork server that has imported this module, inherits it
    CHUNK = next(SOURCE.chunks(1))[1]
    SOURCE.words(1), CHUNK.words(1)

    def draw(number):
        return [SOURCE.words(2).tobytes().hex(), CHUNK.words(2).tobytes().hex()]
"""
POOLS = """
    import multiprocessing
    import sys
    from concurrent.futures import ProcessPoolExecutor

    import drawing
    from veil.errors import EntropyError

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        if sys.argv[1] == "forkserver":
            context.set_forkserver_preload(["drawing"])
        with context.Pool(2) as pool:
            for words in pool.map(drawing.draw, range(6), chunksize=1):
                print(*words)
            try:
                pool.map(drawing.draw, [drawing.SOURCE])
            except EntropyError as problem:
                print("refused:", problem, file=sys.stderr)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            for words in pool.map(drawing.draw, range(6)):
                print(*words)
            try:
                pool.submit(drawing.draw, drawing.CHUNK).result()
            except EntropyError as problem:
                print("refused:", problem, file=sys.stderr)
        print(*drawing.draw(0))
"""


@needs_fork
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_of_processes_draw_independent_noise(tmp_path: Path, method: str) -> None:
    (tmp_path / "drawing.py").write_text(textwrap.dedent(DRAWING))
    script = tmp_path / "pools.py"
    script.write_text(textwrap.dedent(POOLS))
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(script), method]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert len(words) == 26
    assert len(set(words)) == 26
    assert done.stderr.count("cannot be copied or pickled") == 2, done.stderr


@needs_fork
def test_randomizers_computed_before_a_fork_are_not_used_by_the_child() -> None:
    pytest.importorskip("gmpy2")
    from veil.shuffle.peos.dgk import RandomizerPool, make_keys

    public, _ = make_keys(32, 512)
    pool = RandomizerPool(public)
    pool.fill(4)

    def take() -> list[str]:
        return [f"{int(number):x}" for number in pool.take(3)]

    drawn = in_child(take) + in_child(take) + take()
    assert len(set(drawn)) == len(drawn) == 9
    assert len(pool) == 1
    with pytest.raises(EntropyError, match="cannot be copied or pickled"):
        copy.deepcopy(pool)


@needs_fork
@pytest.mark.parametrize("kind", ["ledger", "outbox"])
def test_a_fork_while_a_thread_holds_a_ledger_or_an_outbox_does_not_block_the_child(tmp_path: Path, kind: str) -> None:
    ledger, outbox = Ledger(tmp_path / "ledger", lifetime=1.0), Outbox(tmp_path / "outbox")
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger._thread if kind == "ledger" else outbox._thread:
            inside.set()
            assert leave.wait(LIMIT)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(LIMIT)
    seen = in_child(lambda: [str(ledger.left), str(len(outbox.parcels()))])
    leave.set()
    thread.join()
    assert seen == ["1", "0"]


@needs_fork
def test_a_forked_child_does_not_spend_a_budget_in_memory_again() -> None:
    ledger = Ledger(lifetime=1.0)

    def refused() -> list[str]:
        with pytest.raises(LedgerError, match="another process's memory"):
            ledger.spend("task", GRR(1.0, 2).guarantee)
        return ["refused"]

    assert in_child(refused) == ["refused"]
    ledger.spend("task", GRR(1.0, 2).guarantee)


def test_replays_are_the_streams_that_chunks_would_have_been() -> None:
    source, plain = SeededForExperiments(5), SeededForExperiments(5)
    first, second = source.replays(65_537), source.replays(1)
    expected = [(rows, hex_words(chunk)) for rows, chunk in [*plain.chunks(65_537), *plain.chunks(1)]]
    for _ in range(2):
        assert [(rows, hex_words(chunk)) for part in (first, second) for rows, chunk in part()] == expected
    assert hex_words(next(source.chunks(1))[1]) == hex_words(next(plain.chunks(1))[1])


def test_a_simulation_gives_the_same_numbers_twice() -> None:
    asked = GRR(epsilon=1.0, domain=3)
    one, two = (simulate(asked, [0, 1, 2] * 100, seed=3) for _ in range(2))
    assert one.counts.tolist() == two.counts.tolist()
