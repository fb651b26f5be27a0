"""`python -m veil.cli` is `veil`."""

from veil.cli.main import run

run()
