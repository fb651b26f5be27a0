"""Plans of every goal: the options, the chosen one and its reason, and refusals."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from veil import MECHANISMS, OLH, Bits, Categories, Integers, Interval, Items, Record, Text
from veil.errors import InputError, ParameterError
from veil.histogram import Histogram
from veil.hitters import PEM
from veil.itemsets import PSFO, SVIM, SVSM
from veil.mechanisms import GRR, FrequencyOracle, Piecewise, SquareWave
from veil.mechanisms.best_oracle import direct_or_hashed
from veil.numeric import Hierarchy, HybridMean, MeanOf, TwoPhaseVariance, WaveDistribution
from veil.planning import GOALS, Choice, Wishes, goal_of, plan
from veil.study import STUDIES, study_from_json

HELD = Interval(0, 1)
WISHES: dict[str, Wishes] = {
    "histogram": Wishes(1.0, Categories.range(8), 1000),
    "numbers": Wishes(1.0, HELD, 500, buckets=16),
    "mean": Wishes(1.0, HELD, 500),
    "variance": Wishes(1.0, HELD, 500),
    "hitters": Wishes(1.0, Bits(16), 1000, k=2),
    "items": Wishes(1.0, Items(50), 1000, k=3),
    "marginals": Wishes(1.0, Record.of(a=2, b=3, c=["x", "y"]), 100_000, k=2),
    "sql": Wishes(1.0, Record.of(a=2, b=3, c=["x", "y"]), 100_000),
}


def wished(kind: str, **more: Any) -> Choice:
    return plan(kind, Wishes(**{**vars(WISHES[kind]), **more}))


@pytest.mark.parametrize("kind", GOALS)
def test_every_goal_explains_its_choice_and_gives_a_study_that_can_be_written(kind: str) -> None:
    choice = plan(kind, WISHES[kind])
    assert choice.taken in choice.options
    assert choice.taken.allowed
    assert choice.taken.name in choice.why
    assert choice.why.endswith(".")
    assert study_from_json(choice.study.to_bytes()) == choice.study
    document = json.loads(json.dumps(choice.to_json(), allow_nan=False))
    assert [option["taken"] for option in document["options"]].count(True) == 1
    assert (document["goal"], document["chosen"], document["epsilon"]) == (kind, choice.taken.name, 1.0)
    assert all(set(option.errors) == set(choice.taken.errors) for option in choice.options)


@pytest.mark.parametrize("kind", GOALS)
def test_named_method_is_chosen_and_unknown_name_refused(kind: str) -> None:
    for option in plan(kind, WISHES[kind]).options:
        named = wished(kind, method=option.name.upper())
        assert (named.taken.name, named.study) == (option.name, option.study)
        assert "as asked for" in named.why
    with pytest.raises(InputError, match=f"expected a method for {kind} "):
        wished(kind, method="nothing of that name")
    with pytest.raises(InputError, match="reports take"):
        wished(kind, max_report_bytes=1, method=max(plan(kind, WISHES[kind]).options, key=_size).name)


def _size(option: Any) -> int:
    return int(option.report_bytes)


def test_wishes_are_checked() -> None:
    for bad in (0, -1, True, 2.5):
        with pytest.raises(ParameterError):
            Wishes(1.0, users=bad)  # type: ignore[arg-type]
        with pytest.raises(ParameterError):
            Wishes(1.0, max_report_bytes=bad)  # type: ignore[arg-type]
    for kind in GOALS:
        with pytest.raises(InputError):
            plan(kind, Wishes(1.0))  # nobody said what people hold
        with pytest.raises(ParameterError):
            wished(kind, epsilon=-1.0)
    with pytest.raises(InputError, match="expected a goal"):
        goal_of("histograms")


# -- goals -------------------------------------------------------------------------------------------------------------


def test_a_histogram_names_any_oracle_even_one_that_is_never_chosen() -> None:
    for name in ("Rappor", "RandomProjection"):
        choice = wished("histogram", method=name)
        assert isinstance(choice.study, Histogram)
        assert choice.study.oracle.name == name
        assert not choice.taken.allowed
        assert choice.taken.notes
    oracles = {name for name, kind in MECHANISMS.items() if issubclass(kind, FrequencyOracle)}
    assert {option.name for option in wished("histogram").options} == oracles


def test_a_distribution_is_asked_for_through_square_wave_if_it_fits() -> None:
    choice = wished("numbers")
    assert [option.name for option in choice.options] == ["SquareWave", "Hierarchy", "HaarHierarchy", "Binning"]
    assert choice.study == WaveDistribution(SquareWave(1.0, HELD, 16))
    assert choice.facts["simulated_users"] == 500
    assert wished("numbers", max_report_bytes=3).taken.name == "HaarHierarchy"
    assert all(0 < option.error("range's error") < 1 for option in choice.options)
    assert plan("numbers", Wishes(1.0, HELD, 500, buckets=16)) == choice  # made-up people are the same ones


def test_predicted_range_error_halves_for_four_times_the_people() -> None:
    few, many = (plan("numbers", Wishes(1.0, HELD, users, "Hierarchy", buckets=64)) for users in (20_000, 80_000))
    ratio = few.taken.error("range's error") / many.taken.error("range's error")
    assert 1.4 < ratio < 2.8  # half, for four times the people


def test_numbers_have_an_error_on_smooth_data_and_one_on_any() -> None:
    smooth, rough = (plan("numbers", Wishes(2.0, HELD, 20_000, buckets=64, rough=rough)) for rough in (False, True))
    assert smooth.options == rough.options
    assert (smooth.taken.name, rough.taken.name) == ("SquareWave", "Hierarchy")
    assert rough.study == Hierarchy(2.0, HELD, 64)
    assert "on any data" in rough.why
    on_smooth, on_any = (
        {option.name: option.error(name) for option in rough.options}
        for name in ("range's error", "range's error on any data")
    )
    # what is small on smooth data only, and what is small on any
    assert on_smooth["SquareWave"] < on_smooth["Hierarchy"]
    assert on_any["SquareWave"] > 3 * on_smooth["SquareWave"]
    assert on_any["SquareWave"] > 2 * on_any["Hierarchy"]
    assert on_smooth["Hierarchy"] < on_any["Hierarchy"] < 3 * on_smooth["Hierarchy"]
    assert plan("numbers", Wishes(2.0, HELD, 500, "Binning", buckets=16, rough=True)).taken.name == "Binning"


def test_rough_numbers_where_a_hierarchy_does_not_fit() -> None:
    coarse = plan("numbers", Wishes(1.0, Integers(0, 99_999), 5_000, buckets=100, rough=True))
    assert coarse.taken.name == "Binning"
    short = plan("numbers", Wishes(1.0, HELD, 5_000, buckets=64, rough=True, max_report_bytes=3))
    assert short.taken.name == "HaarHierarchy"


def test_numbers_leave_out_methods_that_cannot_serve_the_domain() -> None:
    coarse = plan("numbers", Wishes(1.0, Integers(0, 99_999), 500, buckets=100))
    assert [option.name for option in coarse.options] == ["SquareWave", "Binning"]
    with pytest.raises(ParameterError, match="leave `buckets` out"):
        plan("numbers", Wishes(1.0, Integers(0, 99_999), 500, "Hierarchy", buckets=100))
    fine = wished("numbers", buckets=8192)
    assert math.isnan(fine.taken.error("range's error"))
    assert [option.name for option in plan("numbers", Wishes(1.0, Integers(0, 9), 500)).options][-1] == "Binning"


@pytest.mark.parametrize(("epsilon", "name"), [(0.5, "StochasticRounding"), (1.0, "HybridMean"), (4.0, "HybridMean")])
@pytest.mark.parametrize("kind", ["mean", "variance"])
def test_a_mean_is_asked_for_with_the_smallest_error(kind: str, epsilon: float, name: str) -> None:
    choice = plan(kind, Wishes(epsilon, Interval(-40, 60), 1000))
    judged = f"{kind}'s error"
    errors = {option.name: option.error(judged) for option in choice.options}
    assert list(errors) == ["StochasticRounding", "Piecewise", "HybridMean"]
    assert (choice.taken.name, errors[name]) == (name, pytest.approx(min(errors.values())))


def test_errors_of_means_are_those_of_their_mechanisms() -> None:
    held = Interval(0, 250_000)
    hybrid = plan("mean", Wishes(1.0, held, 20_000))
    assert hybrid.study == HybridMean(1.0, held)
    assert hybrid.taken.error("mean's error") == HybridMean(1.0, held).variance(20_000) ** 0.5
    assert plan("mean", Wishes(1.0, held, method="piecewise")).study == MeanOf(Piecewise(1.0, held))
    both = plan("variance", Wishes(1.0, held, 20_000))
    assert both.study == TwoPhaseVariance(HybridMean, 1.0, held)
    assert both.taken.error("mean's error") == HybridMean(1.0, held).variance(10_000) ** 0.5
    assert both.facts["asked_first"] == 10_000


def test_hitters_show_the_rounds_of_their_search() -> None:
    choice = wished("hitters")
    search = PEM(1.0, Bits(16), 2)
    assert choice.study == search
    assert [row["bits"].value for row in choice.rounds] == list(search.lengths)
    assert max(row["floor"].value for row in choice.rounds) == choice.taken.error("floor")  # type: ignore[type-var]
    wider = plan("hitters", Wishes(1.0, Bits(64), 10**6, k=2, settings={"budget": "4096"}))
    assert wider.study == PEM(1.0, Bits(64), 2, budget=4096)
    assert wider.taken.error("candidates") <= 4096
    assert len(wider.rounds) == len(PEM(1.0, Bits(64), 2, budget=4096).lengths)
    letters = plan("hitters", Wishes(1.0, Text(4), k=3, settings={"alphabet": "abc", "threshold": "0.1"}))
    assert letters.study == PEM(1.0, Text(4), 3, alphabet="abc", threshold=0.1)
    with pytest.raises(ParameterError, match="Bits"):
        plan("hitters", Wishes(1.0, Categories.range(5), k=2))


def test_items_are_svim_and_sets_of_them_svsm() -> None:
    assert wished("items").study == SVIM(3, 1.0, Items(50))
    assert wished("items", held=Categories.range(50)).study == SVIM(3, 1.0, Items(50))
    assert wished("items", sets=True).study == SVSM(3, 1.0, Items(50))
    assert wished("items").facts["asked_first"] == 500
    assert math.isnan(wished("items", held=Items(5)).taken.error("floor"))  # all of them are looked at


# -- settings, and kinds of studies ------------------------------------------------------------------------------------


def test_other_parameters_are_set_by_name() -> None:
    assert wished("histogram", method="OLH", settings={"post": "norm-sub"}).study == Histogram(
        OLH(1.0, 8), post="norm-sub"
    )
    assert wished("numbers", settings={"smoothing": "em"}).study == WaveDistribution(SquareWave(1.0, HELD, 16), "em")
    with pytest.raises(InputError, match=r"expected a parameter of square-wave .*, got 'branching'"):
        wished("numbers", settings={"branching": "8"})
    with pytest.raises(InputError, match="threshold is a number or none"):
        wished("hitters", settings={"threshold": "much"})


def test_any_kind_of_study_is_planned_from_its_parameters() -> None:
    made = {
        "square-wave": Wishes(1.0, HELD, buckets=16),
        "hierarchy": Wishes(1.0, HELD, method="admm", settings={"branching": "8"}),
        "haar-hierarchy": Wishes(1.0, HELD),
        "binning": Wishes(1.0, HELD, settings={"bins": "7"}),
        "hybrid-mean": Wishes(1.0, HELD),
        "two-phase-variance": Wishes(1.0, HELD, method="Piecewise"),
        "pem": Wishes(1.0, Bits(16), k=2, method="PGR"),
        "prefix-search": Wishes(1.0, Bits(16), k=2, settings={"keep": "4", "lengths": "8,16"}),
        "every-prefix": Wishes(1.0, Bits(16), k=2, settings={"keep": "4", "lengths": "8,16"}),
        "segment-pairs": Wishes(1.0, Bits(16), k=2),
        "multiple-channel": Wishes(1.0, Bits(16), k=2),
        "privtrie": Wishes(1.0, Bits(16), k=2),
        "psfo": Wishes(1.0, Items(20), settings={"length": "3", "oracle": "GRR"}),
        "svim": Wishes(1.0, Items(20), k=2),
        "ldpminer": Wishes(1.0, Items(20), k=2, settings={"improved": "no"}),
        "svsm": Wishes(1.0, Items(20), k=2),
        "calm": Wishes(1.0, Record.of(a=2, b=3), k=2, settings={"inference": "unbiased"}),
        "binary-calm": Wishes(1.0, Record.of(a=2, b=3), k=2),
        "all-marginals": Wishes(1.0, Record.of(a=2, b=3), k=1),
        "full-contingency": Wishes(1.0, Record.of(a=2, b=3), k=2),
        "fourier-marginals": Wishes(1.0, Record.of(a=2, b=3), k=2),
        "split-em": Wishes(1.0, Record.of(a=2, b=3), k=2, method="unbiased"),
        "table": Wishes(1.0, Record.of(a=2, b=3)),
    }
    found = {kind: plan(kind, wishes).study for kind, wishes in made.items()}
    assert all(study.kind == kind for kind, study in found.items())
    assert set(found) | set(GOALS) >= set(STUDIES) - {"questions", "item-mining"}
    assert found["hierarchy"] == Hierarchy(1.0, HELD, branching=8, method="admm")
    assert found["psfo"] == PSFO(3, GRR, 1.0, Items(20))
    assert found["square-wave"] == WaveDistribution(SquareWave(1.0, HELD, 16))


@pytest.mark.parametrize(
    ("kind", "wishes", "said"),
    [
        ("psfo", Wishes(1.0, Items(20)), "needs length: expected --set length=VALUE"),
        ("hierarchy", Wishes(1.0), "what people hold"),
        ("svim", Wishes(1.0, Items(20)), "needs k: expected -k K"),
        ("haar-hierarchy", Wishes(1.0, HELD, method="x"), "leave --method out"),
        ("questions", Wishes(1.0, HELD), "its task is all it needs"),
        ("binning", Wishes(1.0, HELD, settings={"bins": "many"}), "bins is an integer"),
        ("binning", Wishes(1.0, HELD, settings={"boxes": "2"}), "got 'boxes'"),
        ("two-phase-variance", Wishes(1.0, HELD, method="OLH"), "the name of a MeanMechanism"),
    ],
)
def test_missing_parameters_of_a_study_are_named(kind: str, wishes: Wishes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        plan(kind, wishes)


def test_direct_or_hashed_is_the_one_with_the_smaller_variance() -> None:
    for epsilon in (0.1, 1.0, 2.5, 6.0):
        for size in (2, 5, 10, 11, 40, 1000, 2000):
            held = Integers(1, size)
            direct, hashed = GRR(epsilon, held), OLH(epsilon, held)
            better = direct if direct.variance(1) <= hashed.variance(1) else hashed
            assert direct_or_hashed(epsilon, held) == better
    assert direct_or_hashed(30.0, Integers(1, 100)).name == "GRR"  # where no hash range can be built
