"""The results of several questions of one survey: a sequence of results that is a result itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from veil.errors import InputError, ParameterError
from veil.privacy import Guarantee
from veil.results.base import Result
from veil.results.units import Unit

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.axes import Axes


MOST_PANELS = 12
"""How many questions one picture shows."""


@dataclass(frozen=True, eq=False)
class Answers(Result, Sequence[Any]):
    """The result of each question that anybody answered; `questions` are their numbers in the survey.

    >>> from veil import OLH, simulate
    >>> answers = Answers([simulate(OLH(1.0, d), [0] * 1000, seed=1) for d in (2, 4)], questions=[0, 3])
    >>> len(answers), len(answers[1]), answers.table().column_names[:3]
    (2, 4, ['question', 'value', 'frequency'])
    """

    kind: ClassVar[str] = "answers"
    results: tuple[Result, ...]
    questions: tuple[int, ...] = ()
    """The questions' numbers; 0, 1, 2, ... unless given."""
    guarantee: Guarantee | None = field(default=None, kw_only=True)
    n: int = field(default=0, kw_only=True)
    """How many people reported, whichever questions they answered."""

    def __post_init__(self) -> None:
        results = tuple(self.results)
        questions = tuple(map(int, self.questions)) or tuple(range(len(results)))
        if not results or len(questions) != len(results):
            raise ParameterError("answers are at least one result, and as many numbers of questions as results")
        object.__setattr__(self, "results", results)
        object.__setattr__(self, "questions", questions)
        object.__setattr__(self, "n", self.n or max(result.n for result in results))

    @property
    def population(self) -> int:
        return max(result.population for result in self.results)

    @property
    def lineage(self) -> tuple[str, ...]:
        """The questions' first steps, each once."""
        return tuple(dict.fromkeys(result.lineage[0] for result in self.results if result.lineage))

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, index: Any) -> Any:
        """The results by their place in the sequence, as in a list; `of` takes a question's number."""
        return self.results[index]

    def of(self, question: int) -> Result:
        """The result of a question, by its number in the survey."""
        if question not in self.questions:
            raise InputError("expected the number of a question that somebody answered")
        return self.results[self.questions.index(question)]

    def __eq__(self, other: object) -> bool:
        return list(self.results) == list(other) if isinstance(other, (list, tuple)) else super().__eq__(other)

    __hash__ = Result.__hash__

    def __repr__(self) -> str:
        return f"Answers({list(self.results)!r})"

    def parts(self) -> list[tuple[int | None, Result]]:
        return list(zip(self.questions, self.results, strict=True))

    def table(self, level: float = 0.95) -> pyarrow.Table:
        """All tables below each other, the question's number first; null in columns that a question does not have."""
        import pyarrow as pa

        tables = [result.table(level) for result in self.results]
        fields: dict[str, list[pa.Field]] = {}
        for one in tables:
            for each in one.schema:
                fields.setdefault(each.name, []).append(each)
        # one column holds one type: text where the questions differ
        mixed = [name for name, same in fields.items() if len({each.type for each in same}) > 1]
        tables = [_as_text(one, [name for name in mixed if name in one.column_names]) for one in tables]
        whole = pa.concat_tables(tables, promote_options="default")
        units = {name: {Unit.of_field(each) for each in same} for name, same in fields.items()}
        kept = [
            field.with_metadata((units[field.name].pop() if len(units[field.name]) == 1 else Unit("label")).metadata)
            for field in whole.schema
        ]
        whole = whole.cast(pa.schema(kept))
        numbers = [number for number, one in zip(self.questions, tables, strict=True) for _ in range(len(one))]
        number_field = pa.field("question", pa.int64(), metadata=Unit("count").metadata)
        return whole.add_column(0, number_field, pa.array(numbers, pa.int64()))

    def facts(self, level: float = 0.95) -> dict[str, Any]:
        """The facts of each question."""
        parts = [{"question": number, "kind": one.kind, **one.facts(level)} for number, one in self.parts()]
        return {"answers": parts}

    def remarks(self) -> list[str]:
        return [f"Question {number}: {said}" for number, one in self.parts() for said in one.remarks()]

    def plot(self, k: int = 20, *, truth: Any = None, ax: Axes | None = None, **style: Any) -> Axes:
        """One panel for each question, below each other; returns the first. Needs `veil-ldp[plot]`."""
        from veil.results.render.plot import plot_panels

        if len(self) > 1 and (truth is not None or ax is not None):
            raise InputError("the truth and axes are for one question: plot that one")
        if len(self) > MOST_PANELS:
            raise InputError(f"a picture shows at most {MOST_PANELS} questions: plot some of them")
        if len(self) == 1:
            return self.results[0].plot(k, truth=truth, ax=ax, **style)
        return plot_panels(self.results, k)[0]


def _as_text(table: pyarrow.Table, names: Sequence[str]) -> pyarrow.Table:
    """The table with these columns as text; a set's items joined, as in CSV."""
    import pyarrow as pa

    from veil.results.render.files import cell_text

    for name in names:
        texts = [cell_text(cell) for cell in table.column(name).to_pylist()]
        table = table.set_column(table.column_names.index(name), name, pa.array(texts, pa.string()))
    return table
