"""`python -m veil` is the command `veil`."""

from veil.cli.main import run

run()
