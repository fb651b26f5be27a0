"""Check that a release may be built, and describe what was built: `make dist` runs both.

    python tools/release.py check           # refuse placeholders that users would meet
    python tools/release.py describe dist   # write the SBOM (CycloneDX JSON) and SHA256SUMS beside the archives

The SBOM names the package, its archives with their digests, and every dependency at the version of constraints.txt:
required ones, and optional ones that only an extra for users needs.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PLACEHOLDER = "SET-BEFORE-RELEASE"
CHECKED = ("SECURITY.md", "pyproject.toml", "clients/js/package.json")
NOT_FOR_USERS = {"dev", "gpu"}  # tools of development; packages for one generation of CUDA each
_RESERVED = re.compile(r"https?://[\w.-]+\.(?:example|invalid|test|localhost)\b")

Versions = dict[str, str]
Edges = dict[str, set[str]]


def problems(root: Path) -> list[str]:
    """Return the placeholders in the files of a release, each with its file and line."""
    found = []
    for name in CHECKED:
        for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), start=1):
            if PLACEHOLDER in line:
                found.append(f"{name}:{number}: expected a contact for reports of vulnerabilities, got {PLACEHOLDER}")
            if address := _RESERVED.search(line):
                found.append(f"{name}:{number}: expected an address that exists, got {address[0]}")
    return found


def tested_versions(constraints: str) -> Versions:
    """Return the version of each dependency for this Python.

    >>> tested_versions('# comment\\na==1\\nb==2 ; python_version < "3"\\n')
    {'a': '1'}
    """
    versions = {}
    for line in constraints.splitlines():
        if line and not line.startswith("#"):
            one = Requirement(line)
            if one.marker is None or one.marker.evaluate():
                versions[one.name] = next(iter(one.specifier)).version
    return versions


def closure(lines: list[str]) -> Edges:
    """Return all direct and indirect dependencies of some requirements, each with its own dependencies.

    They are read from the packages that are installed. A package of another platform has none.
    """
    edges: Edges = {}
    waiting = [Requirement(line) for line in lines]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        one = waiting.pop()
        name, extras = canonicalize_name(one.name), frozenset(one.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        inner = [needed for line in _requires(name) if _applies(needed := Requirement(line), extras)]
        edges.setdefault(name, set()).update(canonicalize_name(needed.name) for needed in inner)
        waiting += inner
    return edges


def _requires(name: str) -> list[str]:
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        return []


def _applies(one: Requirement, extras: frozenset[str]) -> bool:
    return one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in (*extras, ""))


def sbom(project: dict[str, Any], version: str, constraints: str, archives: list[Path]) -> str:
    """Return the SBOM of a release in CycloneDX JSON, version 1.6."""
    from cyclonedx.contrib.license.factories import LicenseFactory
    from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentScope, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    licences = LicenseFactory()

    def component(name: str, version: str | None, **more: Any) -> Component:
        purl = PackageURL(type="pypi", name=name, version=version)
        return Component(name=name, version=version, purl=purl, bom_ref=str(purl), **more)

    def licence(name: str) -> list[Any]:
        try:
            stated = distribution(name).metadata.get("License-Expression")
        except PackageNotFoundError:
            return []
        return [licences.make_from_string(stated)] if stated else []

    groups = project["optional-dependencies"]
    required = closure(project["dependencies"])
    direct = [
        *project["dependencies"],
        *(line for group in groups if group not in NOT_FOR_USERS for line in groups[group]),
    ]
    direct = [line for line in direct if _applies(Requirement(line), frozenset())]
    edges, versions = closure(direct), tested_versions(constraints)
    archived = [
        ExternalReference(
            type=ExternalReferenceType.DISTRIBUTION,
            url=XsUri(path.name),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest(path))],
        )
        for path in archives
    ]
    root = component(
        project["name"],
        version,
        type=ComponentType.LIBRARY,
        licenses=[licences.make_from_string(project["license"])],
        external_references=archived,
    )
    parts = {
        name: component(
            name,
            versions.get(name),
            type=ComponentType.LIBRARY,
            scope=ComponentScope.REQUIRED if name in required else ComponentScope.OPTIONAL,
            licenses=licence(name),
        )
        for name in edges
    }
    bom = Bom(components=parts.values())
    bom.metadata.component = root
    bom.register_dependency(root, [parts[canonicalize_name(Requirement(line).name)] for line in direct])
    for name, inner in edges.items():
        bom.register_dependency(parts[name], [parts[other] for other in inner])
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(root: Path, dist: Path) -> None:
    """Write the SBOM, and the digests of the archives and of the SBOM in the format of `sha256sum --check`."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    archives = sorted([*dist.glob("*.whl"), *dist.glob("*.tar.gz")])
    if len(archives) != 2:
        sys.exit(f"{dist}: expected one wheel and one source archive, got {len(archives)} files")
    stem = archives[-1].name.removesuffix(".tar.gz").partition("-py3")[0]
    bom = dist / f"{stem}.cdx.json"
    constraints = (root / "constraints.txt").read_text(encoding="utf-8")
    bom.write_text(sbom(project, stem.rpartition("-")[2], constraints, archives), encoding="utf-8")
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in (*archives, bom))
    (dist / "SHA256SUMS").write_text(sums, encoding="utf-8")


def main() -> None:
    """Run one of the two commands."""
    match sys.argv[1:]:
        case ["check"]:
            if found := problems(ROOT):
                sys.exit("\n".join(["make dist: a release cannot be built yet", *found]))
        case ["describe", dist]:
            describe(ROOT, Path(dist))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
