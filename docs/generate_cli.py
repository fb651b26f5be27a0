"""Writes docs/cli.md from the commands' own help: `python docs/generate_cli.py [FILE]`.

The layout is our own, so that the page does not change with the version of typer. A test keeps the two in step.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import typer

from veil.cli.main import app
from veil.cli.output import EXIT_CODES

_WIDTH = 100
_HEAD = """\
# The command line

Written by `python docs/generate_cli.py` from the commands' own help; change it there.

One set of verbs serves every study. For a trial, make up some people:

```sh
cat > people.py <<'END'
import random

def write(name, *rows):
    with open(name, "w") as file:
        print(*rows, sep="\\n", file=file)

drinks, people = ["tea", "coffee", "water", "juice"], range(5000)
write("labels.txt", *drinks)
write("items.txt", *drinks)
write("values.csv", "drink", *random.choices(drinks, [4, 3, 2, 1], k=5000))
write("drinks.jsonl", "{}", *(f'{{"drink": "{drink}"}}' for drink in random.choices(drinks, k=100)))
write("incomes.csv", "dollars", *(round(random.lognormvariate(10.5, 0.6)) for _ in people))
write("words.csv", "word", *random.choices(["hello", "thanks", "later", "sure"], [4, 3, 2, 1], k=5000))
write("baskets.csv", "basket", *(";".join(random.sample(drinks, 2)) for _ in people))
write("people.csv", "age,state,os,purchase", *(f"{18 + n % 70},{'NY' if n % 3 else 'CA'},iOS,{n % 90}" for n in people))
END
python3 people.py
```

`plan` says what there is to choose from and writes a study. The way of a value:

```sh
veil plan histogram --labels-file labels.txt --epsilon 1 --users 1000000 -o study.json
veil randomize study.json values.csv -o march.arrow            # on the devices
veil randomize study.json values.csv -o april.arrow
veil tally study.json march.arrow -o march.bin                 # at the collector
veil tally study.json april.arrow -o april.bin
veil merge study.json march.bin april.bin -o tally.bin
veil estimate study.json tally.bin -o estimate.csv --plot estimate.svg
```

`estimate` takes tallies or files of reports. How the reports are read is a parameter of the study: `--set` changes it
without asking anybody again. What people were asked cannot be changed:

```sh
veil estimate study.json tally.bin --set post=norm-sub         # frequencies that are not negative
veil plan numbers --range 0 250000 --epsilon 1 -o incomes.json
veil randomize incomes.json incomes.csv --clip -o incomes.arrow  # what lies outside counts as the nearer end
veil estimate incomes.json incomes.arrow --plot incomes.svg
veil plan hitters --max-bytes 6 -k 5 --epsilon 4 -o words.json
veil randomize words.json words.csv -o words.arrow
veil estimate words.json words.arrow --set k=10                # searched again, for more of them
```

`difference` says what changed between two collections of answers to the same study, with intervals and a test
([docs/differences.md](differences.md)):

```sh
veil difference study.json march.bin april.bin -o changes.csv --plot changes.svg
```

A table is asked in SQL: private dimensions are reported with noise, public columns stand beside them, and every number
has its error ([docs/sql.md](sql.md)):

```sh
veil plan sql people.csv --private age,state --public os,purchase --epsilon 2 -o shop.json
veil randomize shop.json people.csv -o shop                    # a folder is a table
veil sql shop "SELECT os, AVG(purchase) AS spent FROM people WHERE age < 30 GROUP BY os"
```

Studies of several rounds ask each person once, in one of the rounds. A folder keeps what the study took; `next` takes
what a round collected and writes the task of the next one, or shows what was learnt. An interruption at any moment
loses nothing. Where a command takes a study, the folder stands for its current round:

```sh
veil plan items --universe items.txt -k 3 --sets --epsilon 2 -o baskets.json
veil next run baskets.json                                     # writes run/round-000.json
veil randomize run baskets.csv -o baskets.arrow                # the share of the people that the round asks
veil next run baskets.arrow                                    # or a tally; and so on, to the result
```

Trials on data like yours, before anybody is asked:

```sh
veil simulate values.csv --epsilon 1 --plot values.svg         # from data to picture in one command
veil simulate baskets.json baskets.csv --truth --people 10000 --folder trial
veil compare values.csv --studies study.json --epsilon 1,2 --plot errors.svg
```

`compare` tells the root mean square error of the shares of values or sets (those among the most frequent that were not
found count as 0), of the share of people below a value for distributions, or of a mean (with a variance: of the mean
and of the standard deviation): the mean over all runs, with its standard error. Of joint distributions it is the root
of the mean, over at most 50 marginals of k attributes, of the sum of the squared errors of their cells.

Values are read from CSV and TSV files with a header, JSON lines (.jsonl or .ndjson, one object a line is one person),
all of these also with .gz, Parquet and Arrow files, or from standard input (`-`, which is read as it comes and never
written to disk); memory does not grow with their size. What does not belong is refused in the same words whatever the
file, by its line or row, and is never shown. (On standard input, where cells are quoted and may hold line breaks, it is
the record that is counted.)

```sh
gzip --keep values.csv
zcat values.csv.gz | veil randomize study.json - --format csv -o today.arrow
veil randomize study.json drinks.jsonl --column drink --missing skip -o answered.arrow
```

A value is missing where a cell is empty, quoted or not, or NaN, and in JSON where it is null or its name is not there.
Where a study has an empty label, a quoted empty cell is that label. `--missing
refuse` stops at it; `--missing skip` leaves such people out, and says how many: estimates are then about people who
have a value, and who sends nothing tells that they have none. Where that is private, plan the study with `--missing
category`: then it is an answer of its own, which is shown as "(missing)", and null in JSON and files:

```sh
veil plan histogram --labels tea,coffee --missing category --epsilon 1 -o study.json
```

Sets are lists in JSON, Parquet and Arrow files. In CSV files they are cells with a separator between the items, and an
empty cell is an empty set.

The same with a service between the devices and the analyst ([docs/collector](collector/service.md)):

```sh
veil survey create study.json --open --new                     # --new makes the database and the key
veil token create --scope answers:read
veil serve &                                                   # takes reports over HTTP
```

Rows that are not significant are hidden where they were picked out of many, as noise alone may look like them: of heavy
hitters, items and itemsets, also in files, and of a histogram that is longer than what is shown. `--all` shows them.

Every command takes `--json`: standard output then holds exactly one JSON document. A mistake is one line on standard
error, or with `--json` the document `{"error": {"kind": ..., "message": ...}}`; wrong usage always goes to standard
error. No message shows anybody's value. Progress and warnings go to standard error. An output file appears only once it
is whole.

`veil --install-completion` teaches the shell that runs it (bash, zsh, fish) to complete commands, options, goals, kinds
of studies, methods and experiments. The script for a shell of choice, as a package or an image needs it:

```sh
_VEIL_COMPLETE=source_zsh veil
```
"""


def page() -> str:
    """The whole page, the same wherever it is made."""
    root: Any = typer.main.get_command(app)
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    parts = [_HEAD, f"## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}\n", _section(root, "veil")]
    parts += _sections(root, "veil")
    return "\n".join(parts)


def _sections(group: Any, name: str) -> list[str]:
    """A section for every command of a group, and for the commands of groups within it."""
    made: list[str] = []
    for sub, command in getattr(group, "commands", {}).items():
        made += [_section(command, f"{name} {sub}"), *_sections(command, f"{name} {sub}")]
    return made


def _section(command: Any, name: str) -> str:
    # laid out here and not by typer: its boxes and metavars change from version to version
    entries = [_entry(parameter) for parameter in command.params]
    entries += [(sub, inner.help) for sub, inner in getattr(command, "commands", {}).items()]
    width = 2 + max(len(left) for left, _ in entries)
    arguments = [left for left, _ in entries if left.isupper()]
    usage = " ".join([name, *(["COMMAND"] if hasattr(command, "commands") else arguments)])
    lines = [f"{usage} [OPTIONS]", "", *textwrap.wrap(command.help, _WIDTH), ""]
    for left, right in entries:
        lines += textwrap.wrap(
            left.ljust(width) + right, _WIDTH, initial_indent="  ", subsequent_indent=" " * (width + 2)
        )
    return f"## `{name}`\n\n```text\n" + "\n".join(lines) + "\n```\n"


def _entry(parameter: Any) -> tuple[str, str]:
    """How a parameter is written, and what it means."""
    if parameter.param_type_name == "argument":
        many = "..." if parameter.nargs == -1 else ""
        return (parameter.metavar or parameter.name.upper()) + many, parameter.help
    shown = [] if parameter.default in (None, False) or parameter.required else [f"default: {parameter.default}"]
    if parameter.required:
        shown.append("required")
    return ", ".join(parameter.opts), parameter.help + "".join(f" [{fact}]" for fact in shown)


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(page(), encoding="utf-8")
