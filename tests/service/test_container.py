"""The image and the compose file: linted, held to what they promise, and the image's own commands run here.

Where a docker engine runs, the image is built and served as shipped.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.patience import until
from tests.service.harness import SURVEY, Collector

from veil.collector.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
TMP = "/tmp"  # noqa: S108  # in the containers
TOOLS = Path(sys.executable).parent
Instruction = tuple[str, str]


def instructions() -> list[list[Instruction]]:
    """The instructions of the Dockerfile, stage by stage."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    stages: list[list[Instruction]] = []
    for line in filter(str.strip, lines):
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stages.append([])
        stages[-1].append((name, rest.strip()))
    return stages


def last(name: str) -> str:
    """What an instruction of the stage that is shipped says."""
    (found,) = [rest for other, rest in instructions()[-1] if other == name]
    return found


def shipped_environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in shlex.split(last("ENV")))


def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return document


def checked(*command: str | Path) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def has_engine() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True).returncode == 0


def test_linters_find_nothing() -> None:
    checked(TOOLS / "hadolint", "--failure-threshold", "style", "Dockerfile")
    checked(TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


def test_the_image_has_no_tools_of_the_build_and_no_root() -> None:
    stages = instructions()
    assert len(stages) == 2
    assert last("COPY").startswith("--from=build")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", last("USER"))
    order = [name for name, _ in stages[-1]]
    assert order.index("USER") > max(i for i, name in enumerate(order) if name in ("RUN", "COPY"))


def test_nothing_secret_can_get_into_the_image() -> None:
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert next(line for line in allowed if not line.startswith("#")) == "*"
    let_in = {line[1:] for line in allowed if line.startswith("!")}
    copied = {word for stage in instructions()[:-1] for name, rest in stage if name == "COPY" for word in rest.split()}
    assert copied - {"./"} == let_in, "what is copied is what the build may see"
    assert "ARG" not in {name for stage in instructions() for name, _ in stage}
    assert not re.search(r"password|secret|token|credential", " ".join(shipped_environment()), re.IGNORECASE)
    ignored = subprocess.run(["git", "check-ignore", "--quiet", "secrets/collector.toml"], cwd=ROOT)
    assert ignored.returncode in (0, 128), "secrets must not be committed"  # 128: not a repository


@pytest.mark.parametrize("service", ["collector", "database"])
def test_services_can_write_only_where_they_must(service: str) -> None:
    one = compose()["services"][service]
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    places = [volume.partition(":")[2] for volume in one["volumes"]] + one["tmpfs"]
    needed = {
        "collector": {last("VOLUME"), TMP},
        "database": {"/var/lib/postgresql/data", TMP, "/run/postgresql"},
    }
    assert set(places) == needed[service]


def test_secrets_are_files_and_the_database_is_alone() -> None:
    document = compose()
    database, collector = document["services"]["database"], document["services"]["collector"]
    for one in (database, collector):
        for name in one["environment"].values():
            assert not name.startswith("/run/") or name.removeprefix("/run/secrets/") in one["secrets"]
        assert not set(one["environment"]) & {"POSTGRES_PASSWORD", "PGPASSWORD", "VEIL_DATABASE_URL"}
        assert set(one["secrets"]) <= set(document["secrets"])
    assert all(secret["file"].startswith("./secrets/") for secret in document["secrets"].values())
    assert "ports" not in database
    assert database["networks"] == ["inner"]
    assert document["networks"]["inner"]["internal"] is True
    assert all(port.startswith("127.0.0.1:") for port in collector["ports"])
    assert collector["depends_on"]["database"]["condition"] == "service_healthy"


def test_the_secrets_of_the_documentation_are_settings(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "collector" / "deployment.md").read_text(encoding="utf-8")
    (block,) = [block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "secrets/collector.toml" in block]
    made = "".join(line for line in block.splitlines(keepends=True) if not line.startswith(("docker", "veil")))
    subprocess.run(["sh", "-ec", made], check=True, cwd=tmp_path)
    folder = tmp_path / "secrets"
    assert folder.stat().st_mode & 0o777 == 0o700
    files = {Path(secret["file"]).name for secret in compose()["secrets"].values()}
    assert {path.name for path in folder.iterdir()} == files
    assert all(path.stat().st_mode & 0o004 for path in folder.iterdir()), "the image's user reads them"
    settings = load_settings(folder / "collector.toml", {})
    database, password = compose()["services"]["database"], (folder / "database-password").read_text()
    assert len(password) >= 32
    wanted = f"postgresql://{database['environment']['POSTGRES_USER']}:{password}@database/"
    assert settings.database == wanted + database["environment"]["POSTGRES_DB"]
    assert password not in settings.place


def test_the_images_own_commands_serve_and_tell_whether_it_is_ready(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    said = {
        name: value.replace(last("VOLUME"), str(folder))
        for name, value in shipped_environment().items()
        if name != "PATH"
    }
    assert set(said) >= {"VEIL_FOLDER", "VEIL_HOST", "VEIL_PORT", "NUMBA_CACHE_DIR"}
    settings = load_settings(None, said)
    assert (settings.host, settings.port, settings.folder) == ("0.0.0.0", int(last("EXPOSE")), str(folder))  # noqa: S104

    command = [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]
    assert command == ["veil", "serve"]
    collector = Collector(folder, said | {"VEIL_HOST": "127.0.0.1"})
    collector.start()  # veil serve on a free port
    probe = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert probe[0] == "python"
    environment = os.environ | {"VEIL_PORT": str(collector.port)}
    try:

        def ready() -> bool:  # as docker does: again and again, until it is healthy
            return subprocess.run([sys.executable, *probe[1:]], env=environment, capture_output=True).returncode == 0

        until(ready)
    finally:
        collector.kill()
    assert subprocess.run([sys.executable, *probe[1:]], env=environment, capture_output=True).returncode != 0


def test_a_study_reaches_the_container_through_a_pipe(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "veil.cli",
        "survey",
        "create",
        "/dev/stdin",
        "--open",
        "--new",
        "--folder",
        tmp_path,
        "--json",
    ]
    done = subprocess.run(command, input=SURVEY.to_bytes(), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["task"] == SURVEY.task


@pytest.mark.skipif(not has_engine(), reason="no docker engine runs here: the image was linted, NOT built")
def test_the_image_builds_and_gets_healthy_on_a_read_only_file_system() -> None:
    name = f"veil-test-{os.getpid()}"
    checked("docker", "build", "--quiet", "--tag", name, ".")
    try:
        options = ["--read-only", "--tmpfs", TMP, "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true"]
        checked("docker", "run", "--detach", "--name", name, *options, "--health-interval", "1s", name)

        def health() -> str:
            shown = ["docker", "inspect", "--format", "{{.State.Health.Status}}", name]
            return subprocess.run(shown, capture_output=True, text=True, check=True).stdout.strip()

        until(lambda: health() == "healthy")
        checked("docker", "exec", name, "veil", "token", "create", "--scope", "answers:read")
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", name], capture_output=True)
        subprocess.run(["docker", "rmi", "--force", name], capture_output=True)
