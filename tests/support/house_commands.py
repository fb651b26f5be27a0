"""The commands of the guard of the command line: small files, and the steps that are run on them in order.

Seeds are fixed, so that every number repeats. `record_commands` runs the steps and writes what they do;
`tests/e2e/test_guard_commands.py` compares it.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal, NamedTuple

Runs = Literal["both", "plain", "json"]


class Step(NamedTuple):
    """One command: its name in the guard, its words, and how it is run."""

    name: str
    words: str
    runs: Runs = "both"
    """With --json, without, or first without and then with it."""
    given: str | None = None
    """Standard input."""
    drawn: bool = False
    """True if it draws keys or noise that no seed fixes: the bytes of its files are not compared."""
    environment: tuple[tuple[str, str], ...] = ()


def _column(name: str, values: list[object]) -> str:
    return "\n".join([name, *map(str, values), ""])


def _shuffled(counts: dict[str, int]) -> list[object]:
    values: list[object] = [value for value, count in counts.items() for _ in range(count)]
    random.Random(1).shuffle(values)
    return values


def _basket(person: int) -> str:
    items = ("tea", "coffee", "water", "juice", "milk")
    return ";".join(items[i] for i in range(5) if (person * 7 + i * i) % (i + 2) == 0)


def _person(person: int) -> str:
    return f"{18 + person * 7 % 60},{'NY' if person % 3 else 'CA'},{'iOS' if person % 5 else 'Win'},{person % 90}"


def _record(person: int) -> str:
    return f"{'fm'[person % 2]},{'yes' if person % 3 == person % 2 else 'no'},{('low', 'mid', 'top')[person % 7 % 3]}"


FILES: dict[str, str] = {
    "drinks.txt": "tea\ncoffee\nwater\njuice\n",
    "items.txt": "tea\ncoffee\nwater\njuice\nmilk\n",
    "words.txt": "hello\nlater\nnever\n",
    "values.csv": _column("drink", _shuffled({"tea": 700, "coffee": 400, "water": 250, "juice": 150})),
    "april.csv": _column("drink", _shuffled({"tea": 400, "coffee": 700, "water": 250, "juice": 150})),
    "incomes.csv": _column("dollars", [int(250_000 * (i * 7919 % 2000 / 2000) ** 2) for i in range(2000)]),
    "words.csv": _column("word", _shuffled({"hello": 1200, "thanks": 900, "later": 600, "sure": 300})),
    "baskets.csv": _column("basket", [_basket(i) for i in range(2000)]),
    "people.csv": _column("age,state,os,purchase", [_person(i) for i in range(2000)]),
    "records.csv": _column("sex,smokes,income", [_record(i) for i in range(3000)]),
    "missing.csv": _column("drink", ["tea", "", "water"] * 100),
    "wrong.csv": "drink\ntea\nwine\n",
    "drinks.jsonl": '{"drink": "tea"}\n{"drink": "coffee"}\n{}\n' * 60,
    "empty.csv": "",
    "queries.sql": "SELECT COUNT(*) FROM people;\nSELECT os, COUNT(*) AS n FROM people GROUP BY os;\n",
    "schema.toml": "[table]\nepsilon = 2\n[private.age]\nintegers = [18, 99]\n[public.purchase]\nmeasure = true\n",
    "large.csv": _column("number", [(i % 7) ** 12 for i in range(1000)]),
    "numbers.txt": "0\n1\n4096\n5\n",
    "broken.json": "{",
}


def write_files(folder: Path) -> None:
    """Write the small files into a folder."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")


_COLLECTOR = "--folder collector"

STEPS: list[Step] = [
    # -- plan: every goal, some kinds of studies, and mistakes
    Step("plan-list", "plan"),
    Step("plan-histogram", "plan histogram --labels-file drinks.txt --epsilon 1 --users 100000 -o study.json"),
    Step("plan-domain", "plan histogram --domain 1024 --epsilon 0.5 --users 1000000"),
    Step("plan-method", "plan histogram --domain 4 --epsilon 1 --method GRR --set post=norm-sub"),
    Step("plan-oracle", "plan histogram --labels-file drinks.txt --epsilon 1 --oracle OUE -o unary.json"),
    Step("plan-large", "plan histogram --domain 1099511627776 --epsilon 4 -o large.json"),
    Step("plan-max-report", "plan histogram --domain 4096 --epsilon 2 --max-report-bytes 2"),
    Step("plan-missing", "plan histogram --labels tea,water --missing category --epsilon 2 -o missing.json"),
    Step(
        "plan-shuffler",
        "plan histogram --domain 64 --shuffler --epsilon-central 0.1 --delta 1e-9 --users 100000 -o shuffled.json",
    ),
    Step("plan-numbers", "plan numbers --range 0 250000 --buckets 64 --epsilon 1 --users 20000 -o incomes.json"),
    Step("plan-numbers-rough", "plan numbers --range 0 250000 --buckets 16 --rough --epsilon 1 -o rough.json"),
    Step("plan-times", "plan numbers --range 2026-01-01 2027-01-01 --buckets 12 --epsilon 1"),
    Step("plan-mean", "plan mean --range 0 250000 --epsilon 1 -o mean.json"),
    Step("plan-hitters", "plan hitters --max-bytes 6 -k 3 --epsilon 4 --users 3000 -o words.json"),
    Step("plan-hitters-bits", "plan hitters --bits 24 -k 5 --epsilon 4 --method OLH"),
    Step("plan-items", "plan items --universe items.txt -k 3 --epsilon 4 --users 2000 -o items.json"),
    Step("plan-sets", "plan items --universe items.txt -k 3 --sets --epsilon 4 --users 2000 -o sets.json"),
    Step(
        "plan-marginals",
        "plan marginals records.csv --private sex,smokes,income -k 2 --epsilon 2 --users 3000 -o joint.json",
    ),
    Step("plan-marginals-attributes", "plan marginals --attribute a=0..9 --attribute b=3 -k 2 --epsilon 1"),
    Step(
        "plan-sql",
        "plan sql people.csv --private age,state --public os,purchase --epsilon 2 "
        "--query 'SELECT COUNT(*) FROM people WHERE age < 30' -o shop.json",
    ),
    Step("plan-schema", "plan sql --schema schema.toml"),
    Step("plan-kind", "plan hybrid-mean --range 0 1 --epsilon 1"),
    Step("plan-without-epsilon", "plan histogram --domain 4"),
    Step("plan-no-such-goal", "plan shyness --domain 4 --epsilon 1"),
    Step("plan-bad-epsilon", "plan histogram --domain 4 --epsilon nan"),
    Step("plan-foreign-option", "plan histogram --domain 4 --epsilon 1 --sets"),
    # -- a histogram by hand
    Step("randomize", "randomize study.json values.csv --seed 1 -o march.arrow"),
    Step("randomize-parquet", "randomize study.json april.csv --seed 2 -o april.parquet"),
    Step("randomize-stdin", "randomize study.json - --format csv --seed 3 -o input.arrow", given=FILES["values.csv"]),
    Step("randomize-skip", "randomize study.json drinks.jsonl --column drink --missing skip --seed 4 -o some.arrow"),
    Step("randomize-category", "randomize missing.json missing.csv --seed 5 -o missing.arrow"),
    Step("randomize-refuse", "randomize study.json missing.csv --missing refuse --seed 6 -o none.arrow"),
    Step("randomize-outside", "randomize study.json wrong.csv --seed 7 -o none.arrow"),
    Step("randomize-no-file", "randomize study.json nowhere.csv -o none.arrow"),
    Step("randomize-no-output", "randomize study.json values.csv"),
    Step("tally", "tally study.json march.arrow -o march.bin"),
    Step("tally-april", "tally study.json april.parquet -o april.bin"),
    Step("tally-other-study", "tally shuffled.json march.arrow -o none.bin"),
    Step("tally-engine", "tally study.json march.arrow -o none.bin --engine abacus"),
    Step("merge", "merge study.json march.bin april.bin -o both.bin"),
    Step("merge-damaged", "merge study.json march.bin broken.json -o none.bin"),
    Step("estimate", "estimate study.json march.bin -o estimate.csv"),
    Step("estimate-result", "estimate study.json both.bin --level 0.9 --top 2 -o estimate.result.json"),
    Step("estimate-parquet", "estimate study.json march.arrow -o estimate.parquet --plot estimate.svg"),
    Step("estimate-post", "estimate study.json both.bin --set post=norm-sub"),
    Step("estimate-missing", "estimate missing.json missing.arrow"),
    Step("estimate-other-study", "estimate unary.json march.bin"),
    Step("estimate-bad-set", "estimate study.json march.bin --set nothing=1"),
    Step("difference", "difference study.json march.bin april.bin --all -o changes.csv"),
    # -- numbers, strings, sets and joint distributions
    Step("randomize-numbers", "randomize incomes.json incomes.csv --seed 8 -o incomes.arrow"),
    Step("estimate-numbers", "estimate incomes.json incomes.arrow"),
    Step("estimate-numbers-file", "estimate incomes.json incomes.arrow --set bands=10 -o incomes.csv-result.csv"),
    Step("difference-numbers", "difference incomes.json incomes.arrow incomes.arrow"),
    Step("simulate-rough", "simulate rough.json incomes.csv --seed 9 --truth", "json"),
    Step("simulate-mean", "simulate mean.json incomes.csv --seed 10 --truth"),
    Step("randomize-words", "randomize words.json words.csv --seed 11 -o words.arrow"),
    Step("estimate-words", "estimate words.json words.arrow --set k=4 --all"),
    Step("tally-words", "tally words.json words.arrow --candidates words.txt -o words.bin"),
    Step("randomize-large", "randomize large.json large.csv --seed 11 -o large.arrow"),
    Step("tally-candidates", "tally large.json large.arrow --candidates numbers.txt -o large.bin"),
    Step("estimate-candidates", "estimate large.json large.bin"),
    Step("simulate-items", "simulate items.json baskets.csv --seed 12 --truth"),
    Step("next-begin", "next run sets.json", "json"),
    Step("next-where", "next run"),
    Step("next-randomize", "randomize run baskets.csv --seed 13 -o round.arrow"),
    Step("next-round", "next run round.arrow", "json"),
    Step("next-other-file", "next run march.arrow"),
    Step("simulate-sets", "simulate sets.json baskets.csv --seed 14 --folder trial --truth", "json"),
    Step("simulate-sets-again", "simulate sets.json baskets.csv --seed 14 --truth", "plain"),
    Step("randomize-joint", "randomize joint.json records.csv --seed 15 -o joint.arrow"),
    Step("estimate-joint", "estimate joint.json joint.arrow --marginal sex,smokes -o joint.csv"),
    Step("estimate-given", "estimate joint.json joint.arrow --marginal smokes --given sex"),
    Step("synthesize", "synthesize joint.json joint.arrow -n 50 --seed 16 -o synthetic.csv"),
    # -- trials
    Step("simulate", "simulate values.csv --epsilon 1 --seed 17 --truth -o simulated.csv"),
    Step("simulate-people", "simulate study.json values.csv --people 5000 --seed 18"),
    Step("simulate-range", "simulate incomes.csv --range 0 250000 --epsilon 2 --seed 19"),
    Step(
        "compare", "compare values.csv --studies study.json,unary.json --epsilon 0.5,2 --runs 2 --seed 20 -o errors.csv"
    ),
    # -- a table in SQL
    Step("randomize-table", "randomize shop.json people.csv --seed 21 -o shop", "json"),
    Step("sql-count", "sql shop 'SELECT COUNT(*) FROM people WHERE age < 30' -o count.csv"),
    Step("sql-groups", "sql shop 'SELECT os, AVG(purchase) AS spent, COUNT(*) FROM people WHERE age < 40 GROUP BY os'"),
    Step("sql-format", "sql shop 'SELECT state, COUNT(*) FROM people GROUP BY state' --format csv", "plain"),
    Step("sql-explain", "sql shop.json 'EXPLAIN SELECT AVG(purchase) FROM people WHERE age < 30' --users 50000"),
    Step("sql-input", "sql shop", "plain", given=FILES["queries.sql"]),
    Step("sql-mistake", "sql shop 'SELECT COUNT(*) FROM nobody'"),
    Step("sql-not-counted", "sql shop 'DELETE FROM people'"),
    Step("estimate-table", "estimate shop.json shop --set 'query=SELECT COUNT(*) FROM people'"),
    Step("estimate-table-without-query", "estimate shop.json shop"),
    # -- looking at files
    *(
        Step(f"inspect-{name}", f"inspect {file}")
        for name, file in {
            "study": "study.json",
            "shuffled": "shuffled.json",
            "reports": "march.arrow",
            "tally": "both.bin",
            "result": "estimate.result.json",
            "run": "run",
            "table": "shop",
            "broken": "broken.json",
            "empty": "empty.csv",
            "nothing": "nowhere",
        }.items()
    ),
    Step("inspect-checked", "inspect march.arrow --study study.json"),
    Step("inspect-assessment", "inspect study.json --assessment"),
    Step("post-list", "post"),
    Step("post-method", "post norm-sub"),
    Step("reproduce-list", "reproduce"),
    Step("reproduce-unknown", "reproduce nothing"),
    Step("demo-offline", "demo --offline --people 2000 --seed 22 --folder demo"),
    Step("demo-usage", "demo --seed 3"),
    # -- a collector: its database, devices that answer over HTTP, and what an operator does
    Step("survey-list-nothing", f"survey list {_COLLECTOR}"),
    Step("plan-sure", "plan histogram --labels tea,coffee,water --method GRR --epsilon 40 -o sure.json"),
    Step(
        "survey-create",
        f"survey create sure.json --new --name drinks --allow-weak-privacy --minimum 2 --step 1 {_COLLECTOR}",
        "json",
        drawn=True,
    ),
    Step("survey-open", f"survey open drinks {_COLLECTOR}", "json", drawn=True),
    Step("survey-show", f"survey show drinks {_COLLECTOR}", drawn=True),
    Step(
        "answer-tea",
        "answer {url} --name drinks --key {key} --ledger ana --lifetime 50 --value tea",
        "json",
        drawn=True,
    ),
    Step("answer-again", "answer {url} --name drinks --key {key} --ledger ana --value tea", drawn=True),
    Step("answer-too-much", "answer {url} --name drinks --key {key} --ledger ana --value tea --changed", drawn=True),
    Step("answer-preview", "answer {url} --name drinks --key {key} --ledger ben --lifetime 50 --preview", drawn=True),
    Step(
        "answer-coffee",
        "answer {url} --name drinks --key {key} --ledger ben --lifetime 50 --value coffee",
        "json",
        drawn=True,
    ),
    Step(
        "answer-outside", "answer {url} --name drinks --key {key} --ledger eva --lifetime 50 --value wine", drawn=True
    ),
    Step(
        "answer-no-survey", "answer {url} --name books --key {key} --ledger eva --lifetime 50 --value wine", drawn=True
    ),
    Step(
        "answer-no-collector",
        "answer http://127.0.0.1:9 --name drinks --key {key} --ledger eva --lifetime 1 --value x --patience 0",
        drawn=True,
    ),
    Step("ledger-show", "ledger show ana", drawn=True),
    Step("ledger-raise", "ledger raise ana --lifetime 90", "json", drawn=True),
    Step("ledger-move", "ledger move-clock-back ana", drawn=True),
    Step("ledger-nothing", "ledger show nowhere"),
    Step("survey-list", f"survey list {_COLLECTOR}", drawn=True),
    Step("survey-answer", f"survey answer drinks {_COLLECTOR}", drawn=True),
    Step("survey-next", f"survey next drinks {_COLLECTOR}"),
    Step("survey-rebuild", f"survey rebuild drinks {_COLLECTOR}"),
    Step("survey-export", f"survey export drinks -o exported.parquet {_COLLECTOR}", drawn=True),
    Step("survey-close", f"survey close drinks {_COLLECTOR}", drawn=True),
    Step("backup", f"backup saved.backup {_COLLECTOR}", "json", drawn=True),
    Step("restore", "restore saved.backup --new --folder restored", "json", drawn=True),
    Step("check", "check --folder restored"),
    Step(
        "survey-wave", f"survey create sure.json --name drinks --wave 2 --allow-weak-privacy {_COLLECTOR}", drawn=True
    ),
    Step("survey-purge-unsure", f"survey purge drinks/1 {_COLLECTOR}"),
    Step("survey-no-such", f"survey show books {_COLLECTOR}"),
    Step(
        "token-create",
        f"token create --scope answers:read --name ana --survey drinks/1 {_COLLECTOR}",
        "json",
        drawn=True,
    ),
    Step("token-list", f"token list {_COLLECTOR}", drawn=True),
    Step("token-revoke", f"token revoke ana {_COLLECTOR}", "json"),
    Step("token-scope", f"token create --scope everything {_COLLECTOR}"),
    Step("key-show", f"key show {_COLLECTOR}", drawn=True),
    Step("key-make", "key make other.key", "json", drawn=True),
    Step("key-adopt", f"key adopt {_COLLECTOR}", drawn=True),
    Step("audit", f"audit --last 3 {_COLLECTOR}", "json", drawn=True),
    Step("audit-prune", f"audit prune --before 2999-01-01 {_COLLECTOR}", drawn=True),
    Step("serve-port", "serve --port 99999"),
    Step("serve-settings", "serve --settings broken.json"),
    Step("survey-purge", f"survey purge drinks/1 --yes {_COLLECTOR}", "json"),
    # -- shuffling between parties, without running them
    Step(
        "peos-plan",
        "peos plan --users 2000 --epsilon-server 1 --epsilon-users 2 --epsilon-local 4 --delta 1e-6 --domain 64"
        " -o peos.json",
    ),
    Step("peos-keys", "peos keys parties --study peos.json --bits 512 --port 7101", "json", drawn=True),
    Step("peos-secret", "peos secret own --bits 512", "json", drawn=True),
    Step("peos-secret-again", "peos secret own --bits 512", "plain", drawn=True),
    Step("shuffler-no-settings", "shuffler --config nobody.toml"),
    Step("peos-status-no-settings", "peos status --config nobody.toml"),
    Step("peos-submit-no-settings", "peos submit values.csv --config nobody.toml"),
    Step("peos-server-device", "peos server --config parties/device.toml"),
    # -- the command itself
    Step("version", "--version", "plain"),
    Step("nothing", "", "plain"),
    Step("no-such-command", "nothing", "plain"),
    Step("no-such-option", "plan --nothing", "plain"),
    Step(
        "complete",
        "",
        "plain",
        environment=(("_VEIL_COMPLETE", "complete_bash"), ("COMP_WORDS", "veil su"), ("COMP_CWORD", "1")),
    ),
]
