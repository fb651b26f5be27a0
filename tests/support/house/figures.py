"""Measure a checkout: its size, its wording, its names, its complexity and its concepts.

Figures of wording and complexity have ceilings (`tests/unit/project/test_house.py`). Others are for orientation.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import NamedTuple

TREES = ("src/veil", "src/veil_papers", "tests")
LIMITED = ("clause_docstrings", "vague_texts", "odd_names", "complex_functions")
"""The figures that have ceilings."""
SIZES = ("files", "files_under_80", "lines", "code_lines", "import_lines")
CONCEPTS = ("classes", "abstract_methods", "registries")

MAX_COMPLEXITY = 12
SMALL_FILE = 80
_CLAUSE = re.compile(
    r"(?:^|[.!?]\s+)"
    r"(What|How|Whether|Which|Where|Who|Whoever|The same|So many|As many|Those|That of|Nothing|Nobody)\b"
)
_VAGUE = re.compile(
    r"\b(nobody|whoever|somebody|anybody|so many|as many as there are|beside the truth|for a person's|said|told"
    r"|it would not be its own)\b",
    re.IGNORECASE,
)
_ODD_NAMES = frozenset(
    "found told said kept held given taken seen shown asked wanted made moved settled judged listed joined "  # noqa: SIM905
    "own most least beside whole worth".split()
)
_BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.Assert)
_LAYOUT = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    )
)
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]+")
_MODULE = re.compile(r"veil(_papers)?(\.\w+)*(:\w+)?")


class Place(NamedTuple):
    """A line that a figure counts, and the text that made it count."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Source:
    """One Python file; `name` is its path below the measured folder."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def tokens(self) -> tuple[tokenize.TokenInfo, ...]:
        return tuple(tokenize.generate_tokens(io.StringIO(self.text).readline))

    def docstrings(self) -> Iterator[tuple[int, str, ast.stmt]]:
        """Yield the line of the definition, the docstring and its statement."""
        for node in self.nodes:
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield getattr(node, "lineno", 1), text, node.body[0]

    def code_lines(self) -> int:
        """Return the number of lines that hold code: no blank lines, comments or docstrings."""
        occupied: set[int] = set()
        for token in self.tokens:
            if token.type not in _LAYOUT:
                occupied.update(range(token.start[0], token.end[0] + 1))
        for _, _, statement in self.docstrings():
            occupied.difference_update(range(statement.lineno, _last_line(statement) + 1))
        return len(occupied)

    def import_lines(self) -> int:
        """Return the number of lines in import statements."""
        imports = (node for node in self.nodes if isinstance(node, ast.Import | ast.ImportFrom))
        return sum(_last_line(node) - node.lineno + 1 for node in imports)


def read(folder: Path) -> list[Source]:
    """Read all Python files below a folder; an absent folder has none."""
    return [
        Source(path.relative_to(folder).as_posix(), path.read_text("utf-8")) for path in sorted(folder.rglob("*.py"))
    ]


# -- wording and complexity --------------------------------------------------------------------------------------------


def limited(sources: Sequence[Source]) -> dict[str, list[Place]]:
    """Return the places that each figure with a ceiling counts."""
    places: dict[str, list[Place]] = {name: [] for name in LIMITED}
    for source in sources:
        places["clause_docstrings"] += _clauses(source)
        places["vague_texts"] += _vague(source)
        places["odd_names"] += _odd_names(source)
        places["complex_functions"] += _complex(source)
    return places


def _clauses(source: Source) -> Iterator[Place]:
    for line, text, _ in source.docstrings():
        if _CLAUSE.search(text):
            yield Place(source.name, line, text.splitlines()[0])


def _vague(source: Source) -> Iterator[Place]:
    """Docstrings, comments and texts of one line; a docstring of one line is a text as well, and counts twice."""
    for line, text, _ in source.docstrings():
        if _VAGUE.search(text):
            yield Place(source.name, line, text.splitlines()[0])
    for node in source.nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "\n" not in node.value
            and _VAGUE.search(node.value)
        ):
            yield Place(source.name, node.lineno, node.value)
    if not any("#" in line and _VAGUE.search(line) for line in source.text.splitlines()):
        return  # tokens take longer than all else
    for token in source.tokens:
        if token.type == tokenize.COMMENT and _VAGUE.search(token.string):
            yield Place(source.name, token.start[0], token.string)


def _odd_names(source: Source) -> Iterator[Place]:
    """Functions and assigned names, with or without underscores around them."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        else:
            continue
        if name.strip("_") in _ODD_NAMES:
            yield Place(source.name, node.lineno, name)


def _complex(source: Source) -> Iterator[Place]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            points = complexity(node)
            if points > MAX_COMPLEXITY:
                yield Place(source.name, node.lineno, f"{node.name}: {points}")


def complexity(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return one more than the number of branches of a function, nested functions included."""
    points = 1
    for node in ast.walk(function):
        if isinstance(node, _BRANCHES):
            points += 1
        elif isinstance(node, ast.BoolOp):
            points += len(node.values) - 1
    return points


# -- size and concepts -------------------------------------------------------------------------------------------------


def sizes(sources: Sequence[Source]) -> dict[str, int]:
    """Return the figures of `SIZES`."""
    return {
        "files": len(sources),
        "files_under_80": len(small(sources)),
        "lines": sum(source.lines for source in sources),
        "code_lines": sum(source.code_lines() for source in sources),
        "import_lines": sum(source.import_lines() for source in sources),
    }


def small(sources: Sequence[Source]) -> list[str]:
    """Return the files under 80 lines, without `__init__` files."""
    return [s.name for s in sources if s.lines < SMALL_FILE and not s.name.endswith("__init__.py")]


def repeated_classes(sources: Sequence[Source]) -> dict[str, list[str]]:
    """Return the public classes that several files define, with these files."""
    files = defaultdict[str, set[str]](set)
    for source in sources:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].add(source.name)
    return {name: sorted(having) for name, having in files.items() if len(having) > 1}


def untested(sources: Sequence[Source], tests: Path) -> list[str]:
    """Return the modules without a test file of their name, with or without their package's name before it."""
    paths = list(tests.rglob("test_*.py"))
    subjects = {path.stem.removeprefix("test_") for path in paths}
    subjects |= {f"{path.parent.name}_{path.stem.removeprefix('test_')}" for path in paths}
    modules = [PurePath(source.name) for source in sources]
    return [
        module.as_posix()
        for module in modules
        if module.name not in ("__init__.py", "__main__.py")
        and module.stem not in subjects
        and f"{module.parent.name}_{module.stem}" not in subjects
    ]


def concepts(sources: Sequence[Source]) -> dict[str, list[Place]]:
    """Return the places of all classes, abstract methods and registries.

    A registry is a constant of a module or class that maps texts to classes, functions or names of modules.
    """
    places: dict[str, list[Place]] = {name: [] for name in CONCEPTS}
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                places["classes"].append(Place(source.name, node.lineno, node.name))
                places["registries"] += _registries(source, node.body)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_abstract(node):
                places["abstract_methods"].append(Place(source.name, node.lineno, node.name))
        places["registries"] += _registries(source, source.tree.body)
    return places


def _is_abstract(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(mark).endswith("abstractmethod") for mark in function.decorator_list)


def _registries(source: Source, body: Sequence[ast.stmt]) -> Iterator[Place]:
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name):
            hint = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
            if _CONSTANT.fullmatch(target.id) and node.value is not None and _is_registry(node.value, hint):
                yield Place(source.name, node.lineno, target.id)


def _is_registry(value: ast.expr, hint: str) -> bool:
    if hint.startswith(("dict[str, type[", "Mapping[str, type[", "dict[str, Callable[", "Mapping[str, Callable[")):
        return True
    if isinstance(value, ast.DictComp):  # {one.name: one for one in (...)}
        return isinstance(value.key, ast.Attribute) and ast.unparse(value.key.value) == ast.unparse(value.value)
    if not isinstance(value, ast.Dict):
        return False
    keys = [key.value for key in value.keys if isinstance(key, ast.Constant)]
    if not keys or not all(isinstance(key, str) for key in keys):
        return False
    by_module = all(_MODULE.fullmatch(str(key)) and "." in str(key) for key in keys)
    return by_module or all(_names_code(item) for item in value.values)


def _names_code(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str) and bool(_MODULE.fullmatch(value.value)) and "." in value.value
    if isinstance(value, ast.Call):  # of a class, or of partial
        called = ast.unparse(value.func).rpartition(".")[2]
        return called == "partial" or called[:1].isupper()
    return isinstance(value, ast.Name | ast.Attribute | ast.Lambda)


def by_file(places: Mapping[str, Sequence[Place]]) -> dict[str, dict[str, int]]:
    """Return the number of places of each figure in each file that has any."""
    counts: dict[str, dict[str, int]] = {}
    for name, several in places.items():
        files = sorted(place.file for place in several)
        counts[name] = {file: files.count(file) for file in dict.fromkeys(files)}
    return counts


def _last_line(node: ast.stmt | ast.Import | ast.ImportFrom) -> int:
    return node.lineno if node.end_lineno is None else node.end_lineno
