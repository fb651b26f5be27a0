"""What is promised, one step each. A step returns what it measured; `passed` says whether the claim holds.

A step whose full form takes too long for every day has a sampled form beside it: fewer runs and points, the same
thresholds. `--full` runs the full one.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from acceptance.accuracy import measure, zipf
from acceptance.demo_speed import judge as judge_demo
from acceptance.demo_speed import measure as measure_demo
from acceptance.families import judge as judge_family
from acceptance.families import measure as measure_family
from acceptance.hadamard import transform_over_fft
from acceptance.hardening_load import BEFORE
from acceptance.hardening_load import run as run_load
from acceptance.hash_battery import RANGES, affine, one_word, range_total_ratio, shipped, structured_pairs, worst_leak
from acceptance.hitters import decode
from acceptance.hitters import judge as judge_decoded
from acceptance.ingest import judge as judge_ingest
from acceptance.ingest import on_postgres, on_sqlite
from acceptance.numeric_spikes import all_people
from acceptance.numeric_spikes import judge as judge_spikes
from acceptance.numeric_spikes import measure as measure_spikes
from acceptance.pgr import decode_over_fft, error_over_optimum
from acceptance.post_cells import OTHER_STEPS, measure_all
from acceptance.post_claims import claims_of
from acceptance.post_claims import judge as judge_claims
from acceptance.post_learned import all_cells, write_page
from acceptance.post_learned import judge as judge_learned
from acceptance.post_ratios import EPSILONS, measure_errors
from acceptance.post_ratios import judge as judge_ratios
from acceptance.sampled import COVERAGE, HITTERS, MARGINALS, NUMERIC, SQL
from acceptance.spark_speed import judge as judge_spark
from acceptance.spark_speed import measure as measure_spark
from acceptance.sql_speed import judge as judge_speed
from acceptance.sql_speed import measure as measure_speed
from acceptance.sql_speed import memory as memory_of_rows
from acceptance.tested import ran
from acceptance.token_timing import judge as judge_timing
from acceptance.token_timing import measure as measure_timing
from veil.entropy import SeededForExperiments
from veil.mechanisms import MECHANISMS, PGR, FrequencyOracle, Rappor
from veil_papers.common.writing import commit

ROOT = Path(__file__).parent.parent
AGAINST = "VEIL_TEST_AGAINST"
"""The variable that names the commit of `--against`, for the processes of steps."""
CALIBRATE_CLAIMS = (
    "^Kosarak: OUE-Calibrate has a lower error than OUE-Zero at every eps",
    r"^\(ours\) Kosarak: OUE-Calibrate with the learned prior has a lower error than OUE-Zero at every eps",
    r"^\(ours\) Retail: OUE-Calibrate with the learned prior has a lower error than OUE-Zero at every eps",
    "^OUE-Calibrate has a better F-score than OUE-Zero at and below the significance threshold",
    "^At the significance threshold OUE-Calibrate has a better F-score than OUE-Zero",
)
CONSISTENCY_CLAIMS = (
    "^Base performs very close to Norm",
    "^Base-Pos has about half the error of Base, Zipf",
    "^PowerNS is the best of the ten, Zipf",
    "^Norm or Base is the best on the top k, Zipf",
    "^PowerNS is the best of the ten on random sets, Zipf",
    r"^\(known\) ",
)
GOALS = (r"^\(goal\) ",)
NUMERIC_CLAIMS = (
    "^Beta: SW-EMS has the lowest Wasserstein distance at every eps",
    "^flights: SW-EMS has the lowest Wasserstein distance at every eps .here: within 5 %",
    "^income: HH-ADMM has a lower KS distance than SW-EMS at every eps",
    r"^Beta: SW-EMS has a lower error than HH and HaarHRR at every eps, alpha = 0\.1",
    r"^Beta: SW-EMS has a lower error than HH and HaarHRR at every eps, alpha = 0\.4",
    r"^flights: SW-EMS has a lower error than HH and HaarHRR at every eps, alpha = 0\.1",
    r"^flights: SW-EMS has a lower error than HH and HaarHRR at every eps, alpha = 0\.4",
    "^Beta: SW-EMS's mean is comparable to the better of SR and PM at every eps .here: its error is at most theirs",
    *(  # on wages the paper's stopping rule lets flatter waves win: the page of the reproduction says how
        f"^{label}: at the formula's b the square wave is {what}"
        for label in ("Beta", "flights", "income")
        for what in ("the best of the six shapes .here: within 5 %", "better than ratios up to 0.4 and the triangle")
    ),
    *(f"^{label}: the formula's b is among the best" for label in ("Beta", "flights", "income", "wages")),
)


@dataclass(frozen=True)
class Outcome:
    """What a step measured: rows of (what, measured, required), and whether all of it holds."""

    rows: list[tuple[str, str, str]]
    passed: bool
    seed: str = "fixed in the code"


@dataclass(frozen=True)
class Step:
    """How a step is run. `seconds` is about what it takes alone on a machine of two cores."""

    run: Callable[[], Outcome]
    seconds: int
    full: Callable[[], Outcome] | None = None
    """The full form, where `run` is a sample of it."""
    full_seconds: int = 0
    alone: bool = False
    """Whether it measures time or memory, so that nothing else may run beside it."""
    code: tuple[str, ...] = ("src", "acceptance")
    """The folders with the code that its numbers depend on."""

    @property
    def what(self) -> str:
        """What is promised, in a line."""
        return (self.full or self.run).__doc__ or ""


def exact() -> Outcome:
    """Ratio <= e^eps and zero bias by enumeration: d = 2..8, several eps, surveys, and rivals that must fail."""
    return _tests("tests/exact", "proofs by enumeration (d = 2..8)")


def golden() -> Outcome:
    """Table 3.2 of the thesis, whole."""
    return _tests("tests/unit/project/test_golden.py", "Table 3.2, every row")


def accuracy() -> Outcome:
    """MSE over 20 seeds within 5 % of theory, 95 % intervals covering 93 to 97 %: d = 1024, n = 100,000, eps = 1."""
    rows, passed = [], True
    for name in with_known_variance():
        found = measure(name, epsilon=1.0, size=1024, people=100_000, seeds=20)
        rows.append((f"{name}: MSE over theory", f"{found.mse_over_theory:.4f}", "0.95 to 1.05"))
        rows.append((f"{name}: coverage of 95 % intervals", f"{found.coverage:.4f}", "0.93 to 0.98"))
        passed &= abs(found.mse_over_theory - 1) <= 0.05 and 0.93 <= found.coverage <= 0.98
    return Outcome(rows, passed, seed="0 to 19")


def with_known_variance() -> list[str]:
    """The registered oracles that say how far they may be off."""
    kinds = {name: kind for name, kind in MECHANISMS.items() if issubclass(kind, FrequencyOracle)}
    return [name for name, kind in kinds.items() if kind(1.0, 16).noise.known]


def pgr() -> Outcome:
    """PGR at d = n = 1,000,000, eps = 1, and its variance for d = 1,000 to 100,000 at eps 0.5 to 5."""
    error, ratio = error_over_optimum(), decode_over_fft()
    size = PGR(1.0, 1_000_000).layout.size
    worst = max(
        PGR(eps, d).variance(1) * (math.exp(eps) - 1) ** 2 / (4 * math.exp(eps))
        for eps in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
        for d in (1_000, 3_000, 10_000, 30_000, 100_000)
    )
    rows = [
        ("MSE over 4 e^eps / (n (e^eps - 1)^2)", f"{error:.4f}", "at most 1.06"),
        ("tally and decode over scipy.fft.fftn of q^t cells", f"{ratio:.2f}", "at most 3"),
        ("bytes of a report", str(size), "at most 4"),
        ("worst variance over the optimum, d = 1,000 to 100,000, eps = 0.5 to 5", f"{worst:.3f}", "at most 1.10"),
    ]
    return Outcome(rows, error <= 1.06 and ratio <= 3 and size <= 4 and worst <= 1.10, seed="0")


def hadamard() -> Outcome:
    """The fast Walsh-Hadamard transform at 2^20."""
    ratio = transform_over_fft()
    return Outcome([("time over numpy.fft.fft of the same length", f"{ratio:.3f}", "at most 2")], ratio <= 2)


def families() -> Outcome:
    """10,011 questions as one rule: its task, reading, drawing and checking, and the tally of one question."""
    return Outcome(*judge_family(measure_family()))


def rappor() -> Outcome:
    """Rappor at eps = 4.39 on Zipf(1.5), 100,000 people, 500 candidates: the top 10, over 10 seeds."""
    oracle = Rappor.with_f(0.5, 500)
    held = np.random.default_rng(0).choice(500, 100_000, p=zipf(500, 1.5))
    top = set(np.argsort(-np.bincount(held, minlength=500), kind="stable")[:10].tolist())
    selected, ranked = [], []
    for seed in range(10):
        estimate = oracle.estimate(oracle.tally(oracle.randomize(held, SeededForExperiments(seed))))
        selected.append(sum(estimate.frequencies[value] > 0 for value in top))
        ranked.append(len(top & {row.value for row in estimate.top(10)}))
    rows = [
        ("eps at f = 1/2, two hashes", f"{oracle.epsilon:.2f}", "4.39"),
        ("of the top 10, found (estimated above zero), worst seed", str(min(selected)), "10"),
        ("of the top 10, among the ten largest estimates, mean", f"{np.mean(ranked):.1f}", ""),
    ]
    return Outcome(rows, min(selected) == 10 and f"{oracle.epsilon:.2f}" == "4.39", seed="0 to 9")


def hash_battery() -> Outcome:
    """500 structured pairs x nine ranges x 2^20 seeds; range totals; and the rivals that must fail."""
    seeds, pairs, limit = 1 << 20, structured_pairs(), 7.4
    ours = worst_leak(shipped, pairs, seeds)
    rival = worst_leak(one_word, pairs, 1 << 14)
    rows = [
        ("worst of 4,500 pair tests, sigmas", f"{abs(ours.sigmas):.2f}", f"below {limit}"),
        ("share leaking there", f"{100 * ours.share:.3f} %", ""),
        ("one-word rival, sigmas (2^14 seeds)", f"{abs(rival.sigmas):.0f}", f"above {limit}"),
        ("one-word rival, share leaking", f"{100 * rival.share:.0f} %", ""),
    ]
    passed = abs(ours.sigmas) < limit < abs(rival.sigmas)
    for buckets in RANGES:
        ratio = range_total_ratio(shipped, buckets, 64, 1 << 18)
        rows.append((f"variance of range totals over theory, g = {buckets}", f"{ratio:.3f}", "0.97 to 1.03"))
        passed &= abs(ratio - 1) < 0.03
    noisy = range_total_ratio(affine, 16, 64, 1 << 18)
    rows.append(("the same for the affine rival, g = 16", f"{noisy:.2f}", "above 1.2"))
    return Outcome(rows, passed and noisy > 1.2, seed="0")


def consistency_ratios() -> Outcome:
    """The consistency paper's methods on Zipf(1.5), d = 1024, n = 1,000,000, OLH: who is better, and by how much."""
    rows, passed = judge_ratios({epsilon: measure_errors(epsilon) for epsilon in EPSILONS})
    return Outcome(rows, passed, seed="0 to 29")


def learned_prior() -> Outcome:
    """The learned prior then Norm-Sub, in 56 cells, n = 1,000,000: the whole table is in learned-prior/README.md."""
    stamp = commit()
    found = measure_all(all_cells(), seeds=20)
    write_page(ROOT / "docs" / "reproduction" / "learned-prior", found, measure_all(all_cells(OTHER_STEPS), 10), stamp)
    rows, passed = judge_learned(found)
    return Outcome(rows, passed, seed="0 to 19")


def calibrate_claims() -> Outcome:
    """Calibrate against OUE-Zero: lower error at every eps, a better F-score up to the significance threshold."""
    return Outcome(*judge_claims(claims_of("calibrate"), CALIBRATE_CLAIMS))


def consistency_claims() -> Outcome:
    """All claims of the consistency paper's reproduction; the verdicts that are promised are required."""
    return Outcome(*judge_claims(claims_of("consistency"), CONSISTENCY_CLAIMS))


def hitters_claims(*, sampled: bool = False) -> Outcome:
    """All claims of the heavy hitters' reproduction, random strings and text; what was promised is required."""
    return Outcome(*judge_claims(claims_of("heavy-hitters", HITTERS if sampled else None), (*GOALS, "^Table 4.1")))


def hitters_decode() -> Outcome:
    """PEM through LinearHashing: 2^26 candidates from 1,000,000 real reports of 64 bits, on one core."""
    return Outcome(*judge_decoded({1.0: decode(1.0, range(10)), 2.0: decode(2.0, range(3))}), seed="0 to 9")


def itemsets_claims() -> Outcome:
    """All claims of the itemsets' reproduction, POS with 515,597 people among them; what was promised is required."""
    return Outcome(*judge_claims(claims_of("itemsets"), GOALS))


def marginals_claims(*, sampled: bool = False) -> Outcome:
    """All claims of the marginals' reproduction, CALM and every rival; what was promised is required."""
    claims = claims_of("marginals", MARGINALS if sampled else None, sample_too=True)
    return Outcome(*judge_claims(claims, (*GOALS, "^With theta = 0.001", "^At eps = 2 ")), seed="14")


def numeric_claims(*, sampled: bool = False) -> Outcome:
    """All claims of the Square Wave paper's reproduction; the verdicts that are promised are required."""
    return Outcome(*judge_claims(claims_of("numeric", NUMERIC if sampled else None), NUMERIC_CLAIMS))


def shuffle_claims() -> Outcome:
    """All claims of the reproduction of chapter 9, frequencies behind a shuffler; what was promised is required."""
    return Outcome(*judge_claims(claims_of("shuffle"), GOALS), seed="16")


def peos_claims() -> Outcome:
    """Table 9.3 with 20,000 people, full keys and each shuffler a process; what `design_peos` chooses."""
    return Outcome(*judge_claims(claims_of("peos"), GOALS), seed="none")


def peos_parties() -> Outcome:
    """PEOS with 20,000 people and full keys: the exact outcome; every shuffler killed at every stage."""
    return _tests("tests/e2e/test_peos_parties.py", "outcomes and kills between processes", "-m", "acceptance")


def sql_claims(*, sampled: bool = False) -> Outcome:
    """All claims of the reproduction of SQL (chapter 7), and what goes beyond; what was promised is required."""
    claims = claims_of("sql", SQL if sampled else None, sample_too=True)
    return Outcome(*judge_claims(claims, GOALS), seed="15")


def sql_speed() -> Outcome:
    """SQL over 1,000,000 people with 2+2 dimensions, and over 10,000,000 rows: time, memory, any split into files."""
    found = measure_speed()
    found["10,000,000 rows made and asked, MB"] = memory_of_rows()
    return Outcome(*judge_speed(found), seed="15")


def demo_speed() -> Outcome:
    """`make demo` in a fresh clone: at most 60 seconds, with a warm cache of pip."""
    return Outcome(*judge_demo(measure_demo(ROOT)), seed="none")


def spark_speed() -> Outcome:
    """Spark on local[2] within 1.3 times the local engine's time at 20,000,000 OLH reports, a worker below 1 GB."""
    return Outcome(*judge_spark(measure_spark()), seed="18")


def spark_cluster() -> Outcome:
    """A cluster of a master and two workers: 20,000,000 reports and studies as on one machine while workers die."""
    return _tests("tests/spark", "kills, randomizing, no workers, another version", "-m", "acceptance")


def coverage(*, sampled: bool = False) -> Outcome:
    """Every stated error beside the truth: intervals, significance and bands of every kind of result; all required."""
    claims = claims_of("coverage", COVERAGE if sampled else None, sample_too=True)
    return Outcome(*judge_claims(claims, (".",)), seed="13")


def spikes_auto() -> Outcome:
    """smoothing="auto" over EMS, Wasserstein distances, n = 1,000,000: incomes at eps 2, 4, five others at 1, 2, 4."""
    found = [case for people, spiky in all_people() for case in measure_spikes(people, spiky=spiky, seeds=10)]
    return Outcome(*judge_spikes(found), seed="0 to 9")


def speed_and_memory() -> Outcome:
    """Every ratio that the benchmark requires, and the memory of tallying 10,000,000 reports."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "bench.json"
        done = subprocess.run([sys.executable, "-m", "bench", "--write", "--json", str(table)], cwd=ROOT, check=False)
        found: dict[str, Any] = json.loads(table.read_text())
    rows = [
        (f"{row['what']}, against {row['against']}", _shown(row["ratio"]), f"at least {row['required']:g}")
        for row in found["rows"]
        if row["required"] is not None
    ]
    return Outcome(rows, done.returncode == 0, seed="fresh entropy")


def _shown(ratio: float | None) -> str:
    return "not run" if ratio is None else f"{ratio:,.4g}"


def ingest_sqlite(millions: int = 10) -> Outcome:
    """Ingest does not slow down: 10,000,000 reports into SQLite, beside an index of random ids."""
    return Outcome(*judge_ingest("SQLite", *on_sqlite(millions)), seed="random ids")


def ingest_postgres(millions: int = 10) -> Outcome:
    """Ingest does not slow down: 10,000,000 reports into PostgreSQL, beside an index of random ids."""
    return Outcome(*judge_ingest("PostgreSQL", *on_postgres(millions)), seed="random ids")


def token_timing() -> Outcome:
    """The time of a token's check tells nothing about stored tokens: 20,000 samples of each case on each store."""
    rows, passed = [], True
    for name, medians in measure_timing(20_000):
        found, well = judge_timing(name, medians)
        rows, passed = rows + found, passed and well
    return Outcome(rows, passed)


def hardening_load(seconds: float = 60.0, millions: int = 5) -> Outcome:
    """The same mixed load on the collector and on that of another commit (--against), five turns each; its memory."""
    commit = os.environ.get(AGAINST, BEFORE)
    rows, passed = run_load(commit, seconds, 5, millions)
    return Outcome([("seconds of a turn, and the other commit", f"{seconds:.0f}, {commit}", ""), *rows], passed)


def collector_kills() -> Outcome:
    """SIGKILL at random moments under load, 25 times on SQLite and 25 on PostgreSQL: nothing lost, nothing doubled."""
    return _tests("tests/service", "25 kills on each store", "-k", "25_kills")


def collector_troubles() -> Outcome:
    """What takes too long for every day: a database that hangs for 30 s, and floods in full size."""
    return _tests("tests/service", "a collector in trouble", "-m", "acceptance", "-k", "not kills and not failovers")


def collector_failovers() -> Outcome:
    """A PostgreSQL server is killed under two collectors, its synchronous standby promoted, 10 times: nothing lost."""
    return _tests("tests/service", "10 failovers", "-m", "acceptance", "-k", "ten_failovers")


def collector_purges() -> Outcome:
    """SIGKILL at 10 random moments of the purge of 5,000,000 reports, on both stores: finished or not begun."""
    return _tests("tests/service", "kills during large purges", "-m", "acceptance", "-k", "5_000_000")


def mutated_files() -> Outcome:
    """Damage 10,000 files under every command: documented exit codes, one clear error, no file left behind."""
    return _tests("tests/e2e/test_mutated_files.py", "damaged files", "-m", "acceptance or not acceptance")


def statistics() -> Outcome:
    """Tests by chance, each with a rival that must fail, in all cases: those that are not run every day."""
    return _tests("tests/stat", "statistics with rivals", "-m", "acceptance")


def reproductions() -> Outcome:
    """Every `veil reproduce NAME --quick` without any data, pages that take long, and the demo between parties."""
    rest = "-m", "acceptance", "-k", "not kill and not parties and not damaged_files"
    return _tests("tests/e2e", "quick reproductions on stand-ins", *rest)


def study_kills() -> Outcome:
    """SIGKILL at random moments while studies run, 20 times each: the same answer, bit by bit."""
    return _tests("tests", "20 kills each of PEM, SVIM and SVSM, in a folder and in the collector", "-k", "20_kills")


def _tests(path: str, what: str, *options: str) -> Outcome:
    return Outcome(*ran(ROOT, path, what, *options))


TESTED = ("src", "acceptance", "tests")

STEPS = {
    "exact": Step(exact, 65, code=TESTED),
    "golden": Step(golden, 5, code=TESTED),
    "accuracy": Step(accuracy, 65),
    "pgr": Step(pgr, 10, alone=True),
    "hadamard": Step(hadamard, 5, alone=True),
    "families": Step(families, 30, alone=True),
    "rappor": Step(rappor, 5),
    "hash-battery": Step(hash_battery, 25),
    "consistency-ratios": Step(consistency_ratios, 5),
    "learned-prior": Step(learned_prior, 75),
    "calibrate-claims": Step(calibrate_claims, 135),
    "consistency-claims": Step(consistency_claims, 300),
    "hitters-claims": Step(partial(hitters_claims, sampled=True), 170, hitters_claims, 1_800),
    "hitters-decode": Step(hitters_decode, 150, alone=True),
    "itemsets-claims": Step(itemsets_claims, 320),
    "marginals-claims": Step(partial(marginals_claims, sampled=True), 330, marginals_claims, 2_700),
    "numeric-claims": Step(partial(numeric_claims, sampled=True), 350, numeric_claims, 3_450),
    "coverage": Step(partial(coverage, sampled=True), 570, coverage, 1_600),
    "shuffle-claims": Step(shuffle_claims, 90),
    "peos-claims": Step(peos_claims, 480, alone=True),
    "peos-parties": Step(peos_parties, 240, code=TESTED),
    "sql-claims": Step(partial(sql_claims, sampled=True), 420, sql_claims, 2_400),
    "sql-speed": Step(sql_speed, 100, alone=True, code=("src", "acceptance", "bench")),
    "demo-speed": Step(demo_speed, 120, alone=True),
    "spark-speed": Step(spark_speed, 120, alone=True),
    "spark-cluster": Step(spark_cluster, 400, code=TESTED),
    "spikes-auto": Step(spikes_auto, 475),
    "speed-and-memory": Step(speed_and_memory, 550, alone=True, code=("src", "acceptance", "bench")),
    "ingest-sqlite": Step(partial(ingest_sqlite, 2), 60, ingest_sqlite, 240, alone=True, code=TESTED),
    "ingest-postgres": Step(partial(ingest_postgres, 2), 120, ingest_postgres, 400, alone=True, code=TESTED),
    "mutated-files": Step(mutated_files, 900, code=TESTED),
    "statistics": Step(statistics, 180, code=TESTED),
    "reproductions": Step(reproductions, 330, code=TESTED),
    "collector-troubles": Step(collector_troubles, 120, code=TESTED),
    "token-timing": Step(token_timing, 50, alone=True, code=TESTED),
    "hardening-load": Step(partial(hardening_load, 10.0, 3), 260, hardening_load, 900, alone=True, code=TESTED),
    "collector-kills": Step(collector_kills, 230, code=TESTED),
    "collector-failovers": Step(collector_failovers, 120, code=TESTED),
    "collector-purges": Step(collector_purges, 420, code=TESTED),
    "study-kills": Step(study_kills, 300, code=TESTED),
}
