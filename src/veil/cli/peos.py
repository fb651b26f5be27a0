"""`veil peos ...`: several shufflers that mix reports under secret shares, and add fake ones (thesis 9.5).

Thin like the other commands: here they are only listed.
"""

from __future__ import annotations

import typer

from veil.cli.parties import keys, secret, server, spot_checks, status, submit
from veil.cli.peos_demo import demo
from veil.cli.peos_planning import plan

__all__ = ["peos_app"]

peos_app = typer.Typer(
    help="Shuffle reports with several shufflers and fake reports. No single shuffler has to be trusted.",
    no_args_is_help=True,
)
peos_app.command()(plan)
peos_app.command()(keys)
peos_app.command()(secret)
peos_app.command()(submit)
peos_app.command()(status)
peos_app.command("spot-checks")(spot_checks)
peos_app.command()(server)
peos_app.command()(demo)
