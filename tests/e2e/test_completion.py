"""Completion in bash, zsh and fish: the shell's own function is loaded and asked what comes next."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.service.browser.javascript import missing

# Each prints, one on a line, what the shell would offer after the words of $LINE; $SCRIPT is what veil gave it.
OFFERS = {
    "bash": 'source "$SCRIPT"; COMP_WORDS=($LINE); [[ "$LINE" == *" " ]] && COMP_WORDS+=("");'
    ' COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _veil_completion veil; printf "%s\\n" "${COMPREPLY[@]}"',
    # zle is not there without a terminal: its two functions are replaced, and print what they are given
    "zsh": 'compdef() {}; _arguments() { print -r -- "$@" }; _files() { print files }; source "$SCRIPT";'
    ' words=("${(@s: :)LINE}"); CURRENT=$#words; _veil_completion',
    "fish": 'source "$SCRIPT"; complete -C "$LINE"',
}


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        missing(shell)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with nothing in it but a `veil` on the path."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "bin").mkdir()
    command = folder / "bin" / "veil"
    command.write_text(f"#!{sys.executable}\nfrom veil.cli.main import run\nrun()\n")
    command.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def shell_of(home: Path) -> Callable[..., str]:
    def run(shell: str, script: str, **variables: str) -> str:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        environment = inherited | {"HOME": str(home), "PATH": f"{home / 'bin'}:{os.environ['PATH']}"} | variables
        done = subprocess.run([shell, "-c", script], env=environment, capture_output=True, text=True, cwd=home)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


LINES = [
    ("veil pl", "plan", "post"),
    ("veil plan item", "item-mining", "svim"),  # whose explanation has quotes, which no shell may stumble over
    ("veil token create --scope ans", "answers", "export"),  # a name with a colon
    ("veil survey ", "create", "plan"),
    ("veil estimate --pl", "--plot", "--out"),
    ("veil reproduce cal", "calibrate", "coverage"),
    ("veil post norm-s", "norm-sub", "norm-cut"),
]


# the names come from the same program: other shells are asked only for what they might read in another way
@pytest.mark.parametrize(("shell", "lines"), [("bash", LINES), ("zsh", LINES[1:3]), ("fish", LINES[1:3])])
def test_the_shell_offers_commands_options_and_names(
    shell: str, lines: list[tuple[str, str, str]], home: Path, shell_of: Callable[..., str]
) -> None:
    needs(shell)
    script = home / f"completion.{shell}"
    script.write_text(shell_of(shell, "veil; true", _VEIL_COMPLETE=f"source_{shell}"))
    for line, offered, other in lines:
        found = shell_of(shell, OFFERS[shell], SCRIPT=str(script), LINE=line)
        assert offered in found, line
        assert other not in found, line


@pytest.mark.parametrize(
    ("shell", "files"),
    [("bash", (".bashrc",)), ("zsh", (".zshrc", ".zfunc/_veil")), ("fish", (".config/fish/completions/veil.fish",))],
)
def test_it_installs_itself_into_the_shell_that_runs_it(
    shell: str, files: tuple[str, ...], home: Path, shell_of: Callable[..., str]
) -> None:
    needs(shell)
    told = shell_of(shell, "veil --install-completion; true")
    assert f"{shell} completion installed" in told
    for name in files:
        assert (home / name).is_file()
    shown = shell_of(shell, "veil --show-completion; true")
    assert f"complete_{shell}" in shown


def test_pressing_tab_loads_nothing_heavy(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom veil.cli.main import run\nsys.argv = ['veil']\n"
        "try:\n    run()\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = [name for name in ('numpy', 'numba', 'scipy', 'pyarrow') if name in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    variables = {"_VEIL_COMPLETE": "complete_bash", "COMP_WORDS": "veil ra", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | variables, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "randomize"
