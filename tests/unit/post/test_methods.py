"""Every method on arbitrary histograms: what the paper's Table I says is true, and odd input is met on purpose."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.post_estimates import HUNDRED

from veil import GRR, OLH, OUE, SHE, THE, metrics, post, simulate
from veil.errors import EmptyError, FitWarning, InputError, ParameterError, VeilError
from veil.mechanisms import FrequencyOracle
from veil.post.methods import HistogramMethod, ModelMethod, QueryMethod
from veil.results.estimate import Estimate

Floats = NDArray[np.float64]

TABLE = {  # name: (non-negative, adds up to one), as printed; the last four are not in the paper
    "base": (False, "no"),
    "base-pos": (True, "no"),
    "post-pos": (True, "no"),
    "base-cut": (True, "no"),
    "norm": (False, "yes"),
    "norm-mul": (True, "yes"),
    "norm-cut": (True, "almost"),
    "norm-sub": (True, "yes"),
    "mle-apx": (True, "yes"),
    "power": (True, "no"),
    "power-ns": (True, "yes"),
    "calibrate": (True, "no"),
    "significance": (True, "no"),
    "mle": (True, "yes"),
    "auto": (True, "yes"),
}
PLAIN = {
    name: ({"k": 2} if method.cuts is not None else {})
    for name, method in post.METHODS.items()
    if isinstance(method, HistogramMethod)
}
NORMAL = [
    name for name in PLAIN if name != "significance"
]  # the paper's: significance may lift rare values above others
IDEMPOTENT = ("base", "base-pos", "base-cut", "norm", "norm-mul", "norm-cut", "norm-sub")
MODELS = ("mle-apx", "power", "power-ns", "calibrate", "auto", "mle")

TWO_NAMES = post.Family("two", ("a", "b"), lambda counts, _: -counts, lambda *_: (1.0,), (True,))

number = st.one_of(
    st.floats(-1.0, 1.0),
    st.sampled_from([0.0, 0.1, 0.25, 1.0, -0.1, 1e-300, -1e-300, 5e-324, 1e10, 1e17, 1e300, -1e300]),
    st.floats(-1e300, 1e300),
)
histograms = st.lists(number, min_size=1, max_size=12).map(lambda x: np.array(x, dtype=np.float64))
usual = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=40).map(lambda x: np.array(x, dtype=np.float64))


def apply(name: str, frequencies: Any) -> Floats:
    options = dict(PLAIN[name])
    if options:
        options["k"] = min(options["k"], len(frequencies))
    made: Floats = post.method(name)(frequencies, **options)  # type: ignore[arg-type]
    return made


def largest(frequencies: Floats) -> float:
    return max(1.0, float(np.abs(frequencies).max()))


def is_ordered(before: Floats, after: Floats, slack: float = 0.0) -> bool:
    order = np.argsort(before, kind="stable")
    return bool((np.diff(after[order]) >= -slack).all())


def check_facts(method: post.Method, made: Floats, scale: float = 1.0) -> None:
    assert np.isfinite(made).all()
    if method.nonnegative:
        assert made.min() >= 0
    if method.sums == "yes":
        assert abs(made.sum() - 1) <= 1e-9 * scale
    if method.sums == "almost":
        assert made.sum() <= 1 + 1e-9


def test_the_facts_of_methods_are_those_of_table_1_of_the_paper() -> None:
    assert {name: (method.nonnegative, method.sums) for name, method in post.METHODS.items()} == TABLE
    assert all(method.good_for and method.bias for method in post.METHODS.values())
    assert post.METHODS["norm-cut"].enforces == "non-negative, adds up to at most 1"
    assert post.METHODS["base"].enforces == "nothing"


@pytest.mark.parametrize("name", PLAIN)
@given(frequencies=histograms)
def test_facts_hold_for_any_numbers(name: str, frequencies: Floats) -> None:
    before = frequencies.copy()
    made = apply(name, frequencies)
    assert made.shape == frequencies.shape
    assert np.array_equal(before, frequencies)  # nothing is changed in place
    check_facts(post.METHODS[name], made, largest(frequencies) if name == "norm" else 1.0)


@pytest.mark.parametrize("name", NORMAL)
@given(frequencies=histograms)
def test_order_is_kept(name: str, frequencies: Floats) -> None:
    assert is_ordered(frequencies, apply(name, frequencies))


@pytest.mark.parametrize("name", IDEMPOTENT)
@given(frequencies=histograms)
def test_methods_are_idempotent(name: str, frequencies: Floats) -> None:
    once = apply(name, frequencies)
    assert np.allclose(apply(name, once), once, rtol=1e-9, atol=1e-9 * (largest(frequencies) if name == "norm" else 1))


@pytest.mark.parametrize("name", PLAIN)
@given(frequencies=histograms, random=st.randoms(use_true_random=False))
def test_methods_do_not_depend_on_the_order_of_values(name: str, frequencies: Floats, random: Any) -> None:
    order = np.array(random.sample(range(len(frequencies)), len(frequencies)))
    made = apply(name, frequencies)
    exact = 1e-12 * largest(frequencies) if name in ("norm", "significance") else 1e-12
    assert np.allclose(apply(name, frequencies[order]), made[order], rtol=1e-12, atol=exact)
    for value in np.unique(frequencies):  # ties stay ties
        assert len(np.unique(made[frequencies == value])) == 1


@given(frequencies=usual)
def test_norm_cut_keeps_all_that_fits(frequencies: Floats) -> None:
    made = apply("norm-cut", frequencies)
    cut = frequencies[(made == 0) & (frequencies > 0)]
    assert np.array_equal(made[made > 0], frequencies[made > 0]) or made.sum() == pytest.approx(1.0)
    if len(cut):
        assert made.sum() + cut[cut == cut.max()].sum() > 1 - 1e-12


@given(frequencies=usual, k=st.integers(1, 40))
def test_base_cut_keeps_the_k_largest(frequencies: Floats, k: int) -> None:
    k = min(k, len(frequencies))
    made = post.base_cut(frequencies, k=k)
    threshold = np.sort(frequencies)[-k]
    assert np.array_equal(made, np.where((frequencies >= threshold) & (frequencies > 0), frequencies, 0.0))


@given(frequencies=usual)
def test_significance_spreads_what_is_left(frequencies: Floats) -> None:
    kept = frequencies >= max(frequencies.max(), 0)
    made = post.significance(frequencies, k=1)
    share = max(1 - frequencies[kept].sum(), 0) / max((~kept).sum(), 1)
    assert made == pytest.approx(np.where(kept, frequencies, share))
    assert is_ordered(frequencies, made) or share > frequencies.max()  # the only way to lose the order


@pytest.mark.parametrize(
    ("frequencies", "expected"),
    [
        ([0.3], {"base": [0.3], "norm": [1.0], "norm-mul": [1.0], "norm-cut": [0.3], "norm-sub": [1.0]}),
        ([-0.3], {"base-pos": [0.0], "norm": [1.0], "norm-mul": [1.0], "norm-cut": [0.0], "norm-sub": [1.0]}),
        ([-3.0, -1.0], {"base-pos": [0, 0], "norm-mul": [0.5, 0.5], "norm-cut": [0, 0], "norm-sub": [0, 1]}),
        ([7.0, 7.0], {"norm": [0.5, 0.5], "norm-mul": [0.5, 0.5], "norm-cut": [0.5, 0.5], "norm-sub": [0.5, 0.5]}),
        ([1e300, 0.0], {"norm-mul": [1, 0], "norm-cut": [1, 0], "norm-sub": [1, 0]}),
        ([1e300, 1e300], {"norm-mul": [0.5, 0.5], "norm-sub": [0.5, 0.5]}),
        ([5e-324, 0.0], {"norm-mul": [1, 0], "norm-cut": [0, 0], "norm-sub": [0.5, 0.5]}),
        ([0.7, 0.2, 0.2, 0.05], {"norm-cut": [0.7, 0, 0, 0], "norm-sub": [0.6625, 0.1625, 0.1625, 0.0125]}),
        ([0.8, 0.4, -0.2], {"norm-cut": [0.8, 0, 0], "norm-mul": [2 / 3, 1 / 3, 0], "norm-sub": [0.7, 0.3, 0]}),
    ],
)
def test_methods_equal_results_by_hand(frequencies: list[float], expected: dict[str, list[float]]) -> None:
    for name, answer in expected.items():
        assert apply(name, frequencies) == pytest.approx(answer, rel=1e-12, abs=1e-15), name


@given(shift=st.floats(1e6, 1e15), frequencies=usual)
def test_norm_sub_loses_nothing_when_all_are_large(shift: float, frequencies: Floats) -> None:
    """Adding the same to all values changes nothing: only their differences count."""
    shifted = frequencies + shift
    assert apply("norm-sub", shifted) == pytest.approx(apply("norm-sub", shifted - shift), abs=1e-12)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([0.5, float("nan")], "NaN"),
        ([0.5, float("inf")], "infinite"),
        ([[0.5], [0.5]], "one list"),
        (0.5, "one list"),
        ("norm", "numbers"),
        ([None, 0.5], "NaN"),
        ([{}, 0.5], "list of numbers"),
        (object(), "list of numbers"),
    ],
)
def test_invalid_histograms_are_refused(name: str, bad: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        post.method(name)(bad)


@pytest.mark.parametrize("name", PLAIN)
def test_an_empty_histogram_is_refused(name: str) -> None:
    with pytest.raises(EmptyError, match="at least one"):
        post.method(name)([])  # type: ignore[arg-type]


def test_options_are_checked() -> None:
    for wrong in ({"k": 0}, {"k": 3}, {"k": 1.5}, {"k": True}, {"k": 1, "alpha": 2.0}, {}, {"alpha": 2.0}):
        with pytest.raises(ParameterError, match="k"):
            post.base_cut([0.5, 0.2], **wrong)
    for total in (0, -1, float("inf"), float("nan"), "1", True):
        with pytest.raises(ParameterError, match="positive number"):
            post.norm_sub([0.5, 0.2], total=total)
    with pytest.raises(ParameterError, match="no option 'total'"):
        post.base_pos([0.5], total=1.0)
    with pytest.raises(ParameterError, match="no option 'slack'; it has none"):
        post.norm_sub([0.5], slack=1)
    with pytest.raises(InputError, match="norm-sub"):  # names all there are
        post.method("norm-sup")
    assert post.method("Norm_Sub") is post.norm_sub
    for name in ("post-pos", *MODELS):
        with pytest.raises(InputError, match="needs an Estimate"):
            post.method(name)([0.5, 0.5])  # type: ignore[arg-type]


def test_methods_with_another_total() -> None:
    for name in ("norm", "norm-mul", "norm-sub"):
        assert post.method(name)([0.4, 0.1, -0.2], total=0.25).sum() == pytest.approx(0.25)  # type: ignore[arg-type, attr-defined]
    assert post.norm_cut([0.4, 0.1, -0.2], total=0.45).tolist() == [0.4, 0.0, 0.0]


# -- Estimates ---------------------------------------------------------------------------------------------------------

ORACLES = {kind.__name__: kind for kind in (GRR, OUE, OLH, SHE, THE)}


def estimated(oracle: FrequencyOracle, frequencies: Any, n: int) -> Estimate:
    return Estimate(
        oracle.domain, np.asarray(frequencies, float), n, oracle.noise, n, float(n), float(n), lineage=("x",)
    )


@st.composite
def estimates(draw: Any, kinds: tuple[str, ...] = tuple(ORACLES)) -> Estimate:
    """Estimates that an oracle can give: any counts of support among n reports."""
    size, n = draw(st.integers(2, 24)), draw(st.integers(30, 100_000))
    oracle: Any = ORACLES[draw(st.sampled_from(kinds))](draw(st.sampled_from([0.5, 1.0, 4.0])), size)
    supports = np.array(draw(st.lists(st.integers(0, n), min_size=size, max_size=size)), dtype=float)
    if isinstance(oracle, SHE):
        return estimated(oracle, (supports / n - 0.5) * 2, n)
    if isinstance(oracle, GRR):  # one support a report
        supports = np.diff(np.rint(np.append(0, np.cumsum(supports + 1)) * n / (supports + 1).sum()))
    p, q = float(oracle.p), float(oracle.q)
    return estimated(oracle, (supports / n - q) / (p - q), n)


def made_of(name: str, estimate: Estimate) -> Estimate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return estimate.post(name)


@pytest.mark.parametrize("name", [name for name in post.METHODS if name not in ("mle", "significance")])
@settings(max_examples=12)
@given(estimate=estimates(), random=st.randoms(use_true_random=False))
def test_estimates_obey_the_same_facts(name: str, estimate: Estimate, random: Any) -> None:
    made = made_of(name, estimate)
    method = post.METHODS[name]
    assert isinstance(method, (HistogramMethod, QueryMethod, ModelMethod))
    if name == "post-pos":
        assert np.array_equal(made.frequencies, estimate.frequencies)
        return
    check_facts(method, made.frequencies, 10 * largest(estimate.frequencies) if name == "norm" else 1.0)
    assert is_ordered(estimate.frequencies, made.frequencies, slack=1e-9)
    order = np.array(random.sample(range(len(estimate)), len(estimate)))
    moved = made_of(name, estimated_like(estimate, estimate.frequencies[order]))
    assert moved.frequencies == pytest.approx(made.frequencies[order], rel=1e-6, abs=1e-9)


@given(estimate=estimates(kinds=("GRR",)))
def test_exact_likelihood_obeys_the_same_facts(estimate: Estimate) -> None:
    made = estimate.post("mle").frequencies
    check_facts(post.mle, made)
    assert is_ordered(estimate.frequencies, made, slack=1e-12)


def estimated_like(estimate: Estimate, frequencies: Floats) -> Estimate:
    n = estimate.n
    return Estimate(estimate.domain, frequencies, n, estimate.noise, n, float(n), float(n), lineage=("x",))


@pytest.mark.parametrize("name", [name for name in post.METHODS if name not in ("mle", "post-pos")])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_estimates_of_no_numbers_are_refused(name: str, bad: float) -> None:
    with pytest.raises(InputError, match="finite"):
        estimated(OLH(1.0, 3), [0.5, bad, 0.1], 100).post(name)


def test_the_threshold_of_base_cut_is_that_of_the_paper() -> None:
    """(7): at alpha = 2 two absent values of 100 are expected above it."""
    oracle = OUE(1.0, 100)
    threshold = 2.053748911 * np.sqrt(oracle.variance(1000))  # the normal quantile of 0.98
    made = estimated(oracle, [threshold * 1.000001, threshold * 0.999999, *[0.0] * 98], 1000).post("base-cut")
    assert (made.frequencies > 0).tolist() == [True] + [False] * 99
    few = estimated(OUE(1.0, 3), [0.001, 0.0, -0.001], 1000)
    assert few.post("base-cut").frequencies.tolist() == [0.001, 0.0, 0.0]  # alpha / d is above one half: nothing to cut
    assert few.post("base-cut", alpha=1e-6).frequencies.tolist() == [0.0, 0.0, 0.0]
    for alpha in (0, -1, float("inf"), "2"):
        with pytest.raises(ParameterError, match="alpha"):
            few.post("base-cut", alpha=alpha)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=50))
def test_norm_cut_keeps_frequencies_that_add_up(weights: list[int]) -> None:
    shares = np.array(weights) / sum(weights)
    assert np.array_equal(post.norm_cut(shares), shares)


@pytest.mark.parametrize("seed", range(20))
def test_norm_cut_keeps_all_values_of_grr(seed: int) -> None:
    raw = simulate(GRR(4.0, 4), [0] * 400 + [1] * 200 + [2] * 200 + [3] * 200, seed=seed)
    assert (raw.post("norm-cut").frequencies > 0).all()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: post.em(OUE(1.0, 13), OUE(1.0, 13).randomize([1])),
        lambda: post.em(SHE(1.0, 8), SHE(1.0, 8).randomize([1])),
        lambda: post.em(OLH(1.0, 3), OLH(1.0, 3).randomize([1])),
        lambda: post.em(GRR(1.0, 3), GRR(1.0, 3).randomize([1]), most=0),
        lambda: post.em(GRR(1.0, 3), GRR(1.0, 3).randomize([1]), gap="a"),  # type: ignore[arg-type]
        lambda: HUNDRED.post("calibrate").exceeds("a"),  # type: ignore[attr-defined]
        lambda: HUNDRED.post("calibrate").exceeds(float("nan")),  # type: ignore[attr-defined]
        lambda: HUNDRED.post("calibrate", prior=np.ones(3)),
        lambda: post.Prior("x", ["a"], [1]),  # type: ignore[arg-type]
        lambda: post.Prior("x", np.array([0.0, 5.0]), np.array([1.0, 1.0])),
        lambda: post.Prior.of_frequencies(["a"]),
        lambda: HUNDRED.post("calibrate", prior=TWO_NAMES),
        lambda: post.select(None, "single"),  # type: ignore[arg-type]
        lambda: post.select(HUNDRED, "single", methods=None),  # type: ignore[arg-type]
        lambda: post.select(HUNDRED, "single", methods=[["a"]]),  # type: ignore[list-item]
        lambda: post.select(HUNDRED, "single", seed=-1),
        lambda: post.select(HUNDRED, np.array(5)),
        lambda: post.Sets(5),  # type: ignore[arg-type]
        lambda: post.norm([1e308, 1e308]),
        lambda: metrics.mse("a", [1]),
        lambda: metrics.mse([], []),
        lambda: metrics.ks([], []),
        lambda: metrics.top_mse([1.0], [1.0], 1.5),  # type: ignore[arg-type]
        lambda: metrics.set_mse([1.0], [1.0], [[3]]),
        lambda: metrics.set_mse([1.0], [1.0], [[]]),
        lambda: metrics.mnae([1.0], [1.0], "a"),  # type: ignore[arg-type]
        lambda: metrics.coverage([1.0], [1.0]),  # type: ignore[arg-type]
        lambda: metrics.coverage(HUNDRED, [1.0]),
    ],
)
def test_bad_arguments_raise_veil_errors(wrong: Any) -> None:
    with pytest.raises(VeilError):
        wrong()


def test_totals_are_numbers_of_any_type_but_bool() -> None:
    assert post.norm_sub([0.9, 0.4], total=np.int64(1)).sum() == pytest.approx(1.0)
    with pytest.raises(ParameterError):
        post.norm_sub([0.9, 0.4], total=True)


def test_norm_sub_to_a_total_of_zero_is_zero() -> None:
    assert post.consistency.norm_sub(np.array([0.5, -0.25]), 0.0).tolist() == [0.0, 0.0]
