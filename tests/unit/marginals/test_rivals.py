"""Rivals of CALM: formulas of the thesis, tables of bits, EM against an optimiser, documents, invalid parameters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from veil import Record, simulate
from veil.engines import MemoryCollection
from veil.entropy import SeededForExperiments
from veil.errors import InputError, ParameterError
from veil.marginals import (
    AllMarginals,
    BinaryCALM,
    FourierCoefficients,
    FourierMarginals,
    FullContingency,
    Joint,
    JointStudy,
    SplitEM,
    SplitReports,
    Uniform,
    variance_factor,
)
from veil.marginals.rivals.binary import bit_record, held_cells, walsh
from veil.marginals.rivals.split_em import counted_together, mixed, most_likely, unmixed
from veil.marginals.tables import Views
from veil.results import Result
from veil.survey import Parities

RECORD = Record.of(age=5, sex=["f", "m"], region=["n", "e", "s"])
RNG = np.random.default_rng(5)
PEOPLE = {"age": RNG.integers(0, 5, 40_000), "sex": RNG.choice(["f", "m"], 40_000, p=[0.8, 0.2])}
PEOPLE["region"] = np.where(PEOPLE["age"] > 2, "s", RNG.choice(["n", "e"], 40_000))
STUDIES: list[JointStudy[Any]] = [
    FullContingency(8.0, RECORD),
    AllMarginals(8.0, RECORD, k=2),
    FourierMarginals(8.0, RECORD, k=2),
    SplitEM(24.0, RECORD, k=2),
    SplitEM(24.0, RECORD, k=2, method="unbiased"),
    BinaryCALM(8.0, RECORD, k=2, sets=5, inference="separate"),
]
FOUND: list[Joint] = [simulate(study, PEOPLE, seed=3) for study in STUDIES]
every = pytest.mark.parametrize("number", range(len(STUDIES)), ids=[f"{s.kind}-{i}" for i, s in enumerate(STUDIES)])
CODES = RECORD.encode(PEOPLE)


def truth(*places: int) -> np.ndarray:
    shape = [RECORD.parts[place].size for place in places]
    return np.histogramdd(CODES[:, places], bins=[np.arange(size + 1) for size in shape])[0] / len(CODES)


def test_variance_factors_match_the_thesis() -> None:
    assert [variance_factor(way, (2,) * 8, 3) for way in ("FC", "AM", "FT")] == [256, 448, 93]
    assert variance_factor("FT of bits", (3,) * 8, 3) == 14_893
    assert variance_factor("FT of sets of bits", (3,) * 8, 3) == 1_789


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (2, 3, 4), (5, 2, 3, 7)])
def test_variance_factors_match_the_surveys(sizes: tuple[int, ...]) -> None:
    record = Record.of(**{f"a{i}": size for i, size in enumerate(sizes)})
    for k in range(1, len(sizes) + 1):
        views = [np.prod(some) for some in combinations(sizes, k)]
        assert variance_factor("AM", sizes, k) == sum(views) == len(views) * np.mean(views)
        assert variance_factor("FT of sets of bits", sizes, k) == len(Parities(record, k)) + 1
        assert variance_factor("FT of sets of bits", sizes, k) <= variance_factor("FT of bits", sizes, k)
    assert variance_factor("FC", sizes, 1) == record.size
    if set(sizes) == {2}:
        assert variance_factor("FT", sizes, 2) == variance_factor("FT of sets of bits", sizes, 2) == 11


@pytest.mark.parametrize(("way", "sizes", "k"), [("FT", (2, 3), 1), ("FC", (2, 2), 3), ("XX", (2, 2), 1)])
def test_bad_formulas_are_refused(way: Any, sizes: tuple[int, ...], k: int) -> None:
    with pytest.raises(ParameterError):
        variance_factor(way, sizes, k)


def test_walsh_transform_is_its_own_inverse() -> None:
    values = RNG.normal(size=64)
    assert np.allclose(walsh(walsh(values)) / 64, values)
    signs = np.array([[(-1.0) ** (i & j).bit_count() for j in range(64)] for i in range(64)])
    assert np.allclose(walsh(values), signs @ values)


def test_held_cells_are_the_values() -> None:
    assert bit_record(RECORD).names == ("age.0", "age.1", "age.2", "sex.0", "region.0", "region.1")
    table = np.zeros((8, 2, 4))
    table[:5, :, :3] = truth(0, 1, 2)
    assert np.array_equal(held_cells(table.reshape(-1), [5, 2, 3]), truth(0, 1, 2))


def channels(epsilon: float, *sizes: int) -> list[Any]:
    record = Record.of(**{f"a{i}": size for i, size in enumerate(sizes)})
    return [question.pure.noise for question in SplitEM(epsilon, record, k=1).survey.questions]


def test_mixing_is_the_product_of_the_channels() -> None:
    noises, table = channels(2.0, 3, 2), RNG.dirichlet(np.ones(6)).reshape(3, 2)
    each = [
        np.full((size, size), float(noise.q)) + np.eye(size) * float(noise.p - noise.q)
        for noise, size in zip(noises, (3, 2), strict=True)
    ]
    assert np.allclose(mixed(table, noises), each[0] @ table @ each[1].T)
    assert np.allclose(unmixed(mixed(table, noises), noises), table)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_em_finds_the_most_likely_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    noises = channels(3.0, 3, 2)
    reported = rng.multinomial(400, mixed(rng.dirichlet(np.full(6, 0.2)).reshape(3, 2), noises).reshape(-1)) / 400
    reported = reported.reshape(3, 2)
    raw = unmixed(reported, noises)
    assert raw.min() < 0  # else there is nothing to find

    def loss(flat: np.ndarray) -> float:
        return -float((reported * np.log(np.maximum(mixed(flat.reshape(3, 2), noises), 1e-300))).sum())

    found = most_likely(reported, noises, raw, 1e-9)
    best = optimize.minimize(
        loss, np.full(6, 1 / 6), bounds=[(0, 1)] * 6, constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        method="SLSQP", options={"ftol": 1e-14, "maxiter": 2000},
    )  # fmt: skip
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    assert loss(found.reshape(-1)) <= best.fun + 1e-8
    clipped = np.maximum(raw, 0) / np.maximum(raw, 0).sum()
    assert loss(clipped.reshape(-1)) > best.fun + 1e-6  # a rival that only cuts off what is negative


def test_em_keeps_a_table_that_explains_all_reports() -> None:
    noises, table = channels(3.0, 3, 2), np.full((3, 2), 1 / 6)
    assert np.allclose(most_likely(mixed(table, noises), noises, table, 0.0), table)


def test_split_reports_are_counted_jointly_per_person() -> None:
    study = STUDIES[3]
    reports = [study.survey.randomize({name: column[rows] for name, column in PEOPLE.items()}, SeededForExperiments(1))
               for rows in (slice(0, 1000), slice(1000, 40_000))]  # fmt: skip
    views = Views((5, 2, 3), ((0, 1), (2,), (0, 1, 2)))
    found = views.split(counted_together(MemoryCollection(study.survey, reports), views))  # type: ignore[arg-type]
    said = np.concatenate([np.stack([chunk.columns[f"{i}.value"] for i in range(3)], axis=1) for chunk in reports])
    assert np.array_equal(found[2], np.histogramdd(said, bins=[np.arange(size + 1) for size in (5, 2, 3)])[0])
    assert np.array_equal(found[0], found[2].sum(axis=2))
    assert np.array_equal(found[1], found[2].sum(axis=(0, 1)))


def test_small_tables_of_reports_answer_as_the_whole_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FOUND[3]
    monkeypatch.setattr("veil.marginals.rivals.split_em._WHOLE", 1)
    some = simulate(replace(STUDIES[3]), PEOPLE, seed=3)  # type: ignore[type-var]
    assert len(some.sets) == 3
    assert np.allclose(some.marginal(["sex", "region"]).shares, whole.marginal(["sex", "region"]).shares)
    with pytest.raises(InputError, match="at most 2 attributes"):
        some.marginal(RECORD.names)
    assert whole.marginal(RECORD.names).shares.sum() == pytest.approx(1)


def test_a_tally_of_single_attributes_is_not_enough_for_em() -> None:
    survey = STUDIES[3].survey
    with pytest.raises(InputError, match="reports themselves"):
        STUDIES[3].read(survey.tally(survey.randomize(PEOPLE, SeededForExperiments(1))))


@every
def test_with_little_noise_marginals_are_those_of_the_people(number: int) -> None:
    found = FOUND[number]
    for names, places in ((["age"], (0,)), (["age", "region"], (0, 2)), (["sex", "region"], (1, 2))):
        shares = found.marginal(names).shares
        assert shares.sum() == pytest.approx(1)
        assert np.abs(shares - truth(*places)).max() < 0.05
        assert np.allclose(found.marginal(names[::-1]).shares, shares.T)


@every
def test_results_come_back_from_their_documents(number: int) -> None:
    found = FOUND[number]
    again = Result.from_json(json.loads(json.dumps(found.to_json())))
    assert type(again) is type(found)
    assert again == found
    assert np.array_equal(again.marginal(["age", "sex"]).shares, found.marginal(["age", "sex"]).shares)
    assert found.table().num_rows == 5 + 2 + 3
    assert set(found.facts()) == set(found.fact_units())


@every
def test_larger_marginals_are_refused_or_answered(number: int) -> None:
    study, found = STUDIES[number], FOUND[number]
    if isinstance(study, (FullContingency, SplitEM)):
        assert np.abs(found.marginal(RECORD.names).shares - truth(0, 1, 2)).max() < 0.05
    else:
        with pytest.raises(InputError):
            found.marginal(RECORD.names)


@every
def test_unknown_attributes_are_refused(number: int) -> None:
    with pytest.raises(InputError, match="income"):
        FOUND[number].marginal(["age", "income"])


def test_coefficients_are_made_consistent_and_put_together() -> None:
    study = FourierMarginals(0.3, RECORD, k=2, inference="consistent")
    found = simulate(study, PEOPLE, seed=3)
    raw = replace(found, inference="separate")
    assert raw.marginal(["age", "region"]).shares.min() < 0
    pair, other = found.marginal(["age", "region"]).shares, found.marginal(["age", "sex"]).shares
    assert min(pair.min(), other.min()) >= 0
    assert np.allclose(pair.sum(axis=1), other.sum(axis=1), atol=1e-9)
    errors = [((one.marginal(["age", "region"]).shares - truth(0, 2)) ** 2).sum() for one in (found, raw)]
    assert errors[0] < 0.8 * errors[1]
    every = found.marginal(RECORD.names)
    assert not every.measured
    assert every.shares.sum() == pytest.approx(1)
    assert np.isnan(every.interval()).all()
    assert np.isfinite(found.marginal(["age", "sex"]).interval()).all()
    assert found.synthesize(100, seed=1).num_rows == 100


def test_bits_made_non_negative_stay_a_distribution() -> None:
    study = BinaryCALM(0.5, RECORD, k=2, sets=4)
    found = simulate(study, PEOPLE, seed=3)
    shares = found.marginal(["sex", "region"]).shares
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)


def test_coefficient_without_answers_is_0_with_a_remark() -> None:
    record = Record.of(**{f"a{i}": 2 for i in range(8)})
    found = simulate(FourierMarginals(1.0, record, k=3), {name: [1] * 60 for name in record.names}, seed=1)
    missing = int((found.people == 0).sum())
    assert missing > 0
    assert not found.coefficients[found.people == 0].any()
    assert f"{missing} of 92" in found.remarks()[0]
    assert found.facts()["unanswered"] == missing


def test_the_covariance_of_a_transform_is_that_of_its_coefficients() -> None:
    found = FOUND[2]
    assert isinstance(found, FourierCoefficients)
    for places in ((0,), (0, 2), (1, 2)):
        variances, numbers = found._scatter(places)[1:], found._numbers(places)
        still = replace(found, coefficients=np.zeros(len(found.people)))
        columns = []
        for number in numbers:
            moved = np.zeros(len(found.people))
            moved[number] = 1.0
            columns.append((replace(found, coefficients=moved)._unbiased(places) - still._unbiased(places)).reshape(-1))
        linear = np.stack(columns, axis=1)
        assert np.allclose(found._covariance(places), linear @ np.diag(variances) @ linear.T, atol=1e-15)
        assert np.allclose(found._variance(places), np.diag(found._covariance(places)))
        assert found._variance(places).sum() < 1.2 * variances.sum() / (len(variances) + 1)


def test_the_covariance_of_split_budgets_is_that_of_single_reports() -> None:
    found = FOUND[4]
    assert isinstance(found, SplitReports)
    places, noises = (0, 2), [found.noises[0], found.noises[2]]
    reported = found._reported(places)
    cells = np.stack([unmixed(one.reshape(5, 3), noises).reshape(-1) for one in np.eye(15)])
    square = (reported.reshape(-1)[:, None, None] * cells[:, :, None] * cells[:, None, :]).sum(axis=0)
    mean = reported.reshape(-1) @ cells
    assert np.allclose(found._covariance(places), (square - np.outer(mean, mean)) / found.n)
    assert np.allclose(found._variance(places), np.diag(square) / found.n)


@every
def test_errors_stand_beside_every_cell_in_the_order_of_the_names(number: int) -> None:
    found = FOUND[number]
    one, other = found.marginal(["sex", "age"]), found.marginal(["age", "sex"])
    ends, stderr = one.interval(), one.stderr
    assert np.isfinite(stderr).all()
    assert (ends[:, 0] <= ends[:, 1]).all()
    assert np.allclose(stderr.reshape(2, 5).T.reshape(-1), other.stderr)
    assert np.allclose(ends.reshape(2, 5, 2).transpose(1, 0, 2).reshape(-1, 2), other.interval())
    wider = one.interval(0.999)
    assert (wider[:, 0] <= ends[:, 0]).all()
    assert (wider[:, 1] >= ends[:, 1]).all()
    truth_ = truth(1, 0).reshape(-1)
    assert ((wider[:, 0] <= truth_) & (truth_ <= wider[:, 1])).all()


@pytest.mark.parametrize("number", [2, 3])
def test_conditionals_and_correlations_have_errors_too(number: int) -> None:
    found = FOUND[number]
    rows = found.conditional(["region"], given=["age"])
    ends = rows.interval(0.999)
    true = truth(0, 2) / truth(0).reshape(-1, 1)
    assert ((ends[:, 0] <= true.reshape(-1)) & (true.reshape(-1) <= ends[:, 1])).all()
    pair = found.correlation("age", "region")
    assert pair.low <= pair.value <= pair.high
    assert pair.p_value < 1e-9
    assert found.correlation("age", "sex").p_value > 1e-6


def test_coefficients_without_answers_widen_intervals() -> None:
    found = FOUND[2]
    assert isinstance(found, FourierCoefficients)
    people = found.people.copy()
    people[found._numbers((1, 2))[-1]] = 0
    less = replace(found, people=people)
    sex = less.bounds(["sex", "region"])
    before = found.bounds(["sex", "region"])
    assert sex is not None
    assert before is not None
    assert (sex.high - sex.low).mean() > (before.high - before.low).mean() + 0.05
    assert less.conditional_bounds(["sex"], ["region"]) is None
    assert less.correlation("sex", "region").high == 1.0


def test_large_full_tables_have_short_reports() -> None:
    record = Record.of(**{f"a{i}": 2 for i in range(16)})
    study = FullContingency(1.0, record)
    assert study.family.mechanisms[0].name == "PGR"
    assert study.survey.layout.size <= 8
    assert FullContingency(1.0, RECORD).family.mechanisms[0].name == "SubsetSelection"


def test_bits_are_chosen_for_as_many_as_k_attributes_have() -> None:
    study = BinaryCALM(1.0, RECORD, k=2, users=10**6)
    assert study.sets is not None
    again = replace(study, sets=study.sets)
    assert again.survey == study.survey


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: FullContingency(1.0, Record.of(**{f"a{i}": 2 for i in range(21)})),
        lambda: FullContingency(0.0, RECORD),
        lambda: AllMarginals(1.0, RECORD, k=4),
        lambda: AllMarginals(1.0, Record.of(a=2), k=1),
        lambda: AllMarginals(1.0, RECORD, inference="magic"),  # type: ignore[arg-type]
        lambda: AllMarginals(1.0, Record.of(**{f"a{i}": 2 for i in range(32)}), k=8),
        lambda: FourierMarginals(1.0, RECORD, k=4),
        lambda: FourierMarginals(1.0, Record.of(a=2, b=1), k=1),
        lambda: FourierMarginals(1.0, Record.of(**{f"a{i}": 2 for i in range(32)}), k=8),
        lambda: FourierMarginals(1.0, 4, k=1),  # type: ignore[arg-type]
        lambda: FourierMarginals(1.0, RECORD, k=1, inference="graphical"),  # type: ignore[arg-type]
        lambda: SplitEM(1.0, RECORD, k=0),
        lambda: SplitEM(1.0, RECORD, method="magic"),  # type: ignore[arg-type]
        lambda: SplitEM(1.0, Record.of(**{f"a{i}": 64 for i in range(9)}), k=4),
        lambda: SplitEM(1e-6, RECORD),
        lambda: BinaryCALM(1.0, RECORD, k=4),
        lambda: BinaryCALM(1.0, Record.of(a=8), k=1),
        lambda: BinaryCALM(1.0, RECORD, sets=7),
        lambda: BinaryCALM(1.0, RECORD, sets=(("age.3",),)),
        lambda: BinaryCALM(1.0, RECORD, inference="magic"),  # type: ignore[arg-type]
    ],
)
def test_bad_studies_are_refused(wrong: Callable[[], Any]) -> None:
    with pytest.raises((ParameterError, InputError)):
        wrong()


def test_table_of_too_many_cells_is_refused_with_advice() -> None:
    with pytest.raises(ParameterError, match=r"2,097,152 cells.*CALM"):
        FullContingency(1.0, Record.of(**{f"a{i}": 2 for i in range(21)}))


SMALL = Record.of(a=2, b=3, c=2)


def test_uniform_round_trips_as_a_result() -> None:
    found = Uniform.of(SMALL, people=100)
    assert found.marginal(["a", "b"]).frequencies.tolist() == pytest.approx([1 / 6] * 6)
    assert Result.from_json(found.to_json()) == found
