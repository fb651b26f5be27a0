"""How `veil` starts: at once and without the heavy libraries; and its documentation, which is never behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from docs.generate_cli import page

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("numpy", "numba", "pyarrow", "scipy", "matplotlib", "pandas", "cryptography")
RUN = [sys.executable, "-c", "from veil.cli.main import run; run()"]


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom veil.cli.main import run\nsys.argv = ['veil', '--help']\n"
        "try:\n    run()\nexcept SystemExit as end:\n    assert not end.code\n"
        f"heavy = [name for name in {HEAVY} if name in sys.modules]\nassert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_the_real_command_ends_with_its_exit_code(tmp_path: Path) -> None:
    done = subprocess.run([*RUN, "tally", "no.json", "no.arrow", "-o", "t.bin"], capture_output=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.decode().splitlines() == ["error: there is no file no.json"]
    done = subprocess.run([*RUN, "--version"], capture_output=True, check=True)
    assert done.stdout.startswith(b"veil ")


@pytest.mark.parametrize("module", ["veil", "veil.cli"])
def test_python_m_is_the_command(module: str) -> None:
    commands = ([*RUN, "tally"], [sys.executable, "-m", module, "tally"])
    as_command, as_module = (subprocess.run(command, capture_output=True) for command in commands)
    assert b"Usage: veil tally" in as_module.stderr
    assert (
        (as_module.returncode, as_module.stderr) == (as_command.returncode, as_command.stderr) == (2, as_module.stderr)
    )


def test_the_documentation_is_up_to_date() -> None:
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == page(), "run `python docs/generate_cli.py`"


def test_every_command_and_option_is_explained() -> None:
    import typer

    from veil.cli.main import app

    root = typer.main.get_command(app)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        assert f"## `veil {name}`" in page()
        assert command.help
        assert all(parameter.help for parameter in command.params)
        assert not any(getattr(parameter, "secondary_opts", ()) for parameter in command.params)  # no --no-clip


def test_the_study_may_be_left_out_and_the_values_may_not() -> None:
    shown = subprocess.run([*RUN, "simulate", "--help"], capture_output=True, check=True)
    assert b"simulate [OPTIONS] [STUDY] VALUES" in shown.stdout
    assert subprocess.run([*RUN, "simulate"], capture_output=True).returncode == 2
