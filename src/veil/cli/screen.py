"""The console of every command: text from outside is escaped, so that no label, file name or answer can steer it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from veil.tools.messages import escape_lines, escape_text

__all__ = ["Screen"]


class Screen(Console):
    """A rich console that escapes whatever could format a terminal, except its own styles."""

    def __init__(self, *, quiet: bool = False, stderr: bool = False) -> None:
        super().__init__(quiet=quiet, stderr=stderr, markup=False, highlight=False, emoji=False)
        self.push_render_hook(_EscapeHook())

    def print_line(self, text: str) -> None:
        """Print `text` as one line, however long: line breaks in it are escaped, too."""
        self.print(Text(escape_text(text)), soft_wrap=True)


class _EscapeHook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Escaped(renderable) for renderable in renderables]


class _Escaped:
    """A renderable whose text is escaped after its layout; segments that move the cursor stay as they are."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        segments: Iterable[Segment] = console.render(self._renderable, options)
        for segment in segments:
            yield segment if segment.control else Segment(escape_lines(segment.text), segment.style)
