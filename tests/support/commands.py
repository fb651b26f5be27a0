"""Runs commands of `veil` within the tests, as `typer.testing.CliRunner` does, but describes all commands only once."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer.main
import typer.testing
from typer.testing import Result


class CliRunner(typer.testing.CliRunner):
    """A runner that keeps the command which typer makes of an application: making it takes 30 ms."""

    def invoke(  # type: ignore[override]
        self,
        app: typer.Typer,
        args: Sequence[str] = (),
        *,
        input: str | bytes | None = None,  # noqa: A002 - the name in the runner that this one extends
        env: Mapping[str, str | None] | None = None,
    ) -> Result:
        """Run a command to its end, and return what it wrote, its exit code and what it raised."""
        command, code, problem = _command(app), 0, None
        with self.isolation(input=input, env=env) as streams:
            try:
                command.main(args=list(args), prog_name=self.get_default_prog_name(command))
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
                problem = end if code else None
            except Exception as raised:
                code, problem = 1, raised
            sys.stdout.flush()
            sys.stderr.flush()
            stdout, stderr, output = (stream.getvalue() for stream in streams)
        information: Any = None if problem is None else (type(problem), problem, problem.__traceback__)
        return Result(self, stdout, stderr, output, None, code, problem, information)


@functools.cache
def _command(app: typer.Typer) -> Any:
    return typer.main.get_command(app)
