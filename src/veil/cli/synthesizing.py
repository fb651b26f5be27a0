"""`veil synthesize`: made-up people who are, together, as the answers of a study say."""

from __future__ import annotations

from typing import Annotated

import typer

from veil.cli.options import Changes, Collected, Out, StudyFile, given_changes
from veil.cli.outcome import AsJson, Document, console, plural, reporting, warn, wrote

__all__ = ["synthesize"]

_ENDINGS = (".csv", ".parquet", ".arrow")


@reporting
def synthesize(
    study: StudyFile,
    collected: Collected,
    people: Annotated[int, typer.Option("--people", "-n", min=1, metavar="N", help="How many people to make up.")],
    out: Out,
    changes: Changes = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Make up the same people again.")] = None,
    as_json: AsJson = False,
) -> Document:
    """Generate synthetic records from an estimated joint distribution (.csv, .parquet or .arrow)."""
    from veil.cli.files import check_output, collected_of, load
    from veil.cli.progress import progress
    from veil.cli.showing import remarked
    from veil.errors import InputError
    from veil.marginals import JointStudy
    from veil.results.render.files import arrow_bytes
    from veil.tools.filesystem import write_atomically

    loaded = load(study, given_changes(changes))
    check_output(out, [study, *collected], _ENDINGS)
    if not isinstance(loaded.study, JointStudy):
        raise InputError(
            f"people are made up from a joint distribution, which a study of kind {loaded.study.kind} does not read:"
            " `veil plan marginals` plans one"
        )
    with remarked() as remarks:
        found = loaded.study.read(collected_of(loaded.survey, collected, progress))
        with progress("making up people", people) as advance:
            made = found.synthesize(people, seed)
            advance(people)
    write_atomically(out, arrow_bytes(made, out.suffix.lower().removeprefix(".")))
    facts = found.facts()
    of = f"{plural(facts['views'], 'set')} of up to {facts['largest_view']}" if "views" in facts else "pairs of"
    said = (
        f"These people are made up: none of them is one of the {found.n:,} who answered. Together they follow what was"
        f" estimated for {of} attributes, with the errors that `veil estimate` shows; what nobody was asked for"
        " together is as mixed as that allows."
    )
    screen = console(as_json)
    wrote(screen, out, f"{plural(made.num_rows, 'row')} of {plural(made.num_columns, 'attribute')}")
    screen.print(said)
    for remark in remarks:
        warn(remark)
    known = {"task": loaded.survey.task, "people": found.n, "made_up": made.num_rows, "columns": made.column_names}
    return {**known, "seeded": seed is not None, "remarks": [said, *remarks], "out": str(out)}
