"""Everything on stdout: data, and nothing else."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from omcli.base import ignore
from omcli.base.errors import BadInput, InputOutput
from omcli.cli.console import UNREAD, Colour, Exit, drop_output, has_colour
from omcli.memory.notation import Notation, line
from omcli.memory.observation import UNVERIFIED, Observation, Priority, Status, handle
from omcli.text.clean import json_line, one_line, printable
from omcli.text.instants import minute

if TYPE_CHECKING:
    from omcli.cli.terminal import Pager, Terminal

SCHEMA = 1
"""Version of JSON output. Keys may be added within a version, but never changed or removed."""

_BOLD = "\033[1m"
_STYLES = {Priority.HIGH: _BOLD, Priority.LOW: "\033[2m"}
"""Styles of rows that are not printed on a terminal, if colour is requested. On a terminal, rich draws the rows."""
_PLAIN = "\033[0m"
_GAP = "  "
_WIDEST_CHECK = 11
"""Width of the names of the doctor's checks."""
_WIDEST_SETTING = 60
"""Maximum number of characters to which settings are padded, so that the comments after them are aligned."""
_WIDEST_PRIORITY = max(len(priority) for priority in Priority)
_ZERO_WIDTH = ("Mn", "Me", "Cf")
"""Unicode categories of characters without width."""


class Output:
    """Prints the data of a run as text or JSON. On a terminal, rich draws the text."""

    def __init__(
        self,
        colour: Colour = Colour.AUTO,
        *,
        before: Callable[[], None] = ignore,
        warn: Callable[[str], None] = ignore,
        into: TextIO | None = None,
    ) -> None:
        """`before` is called before each write. The data goes to the stream `into` if given, otherwise to stdout."""
        self._warn = warn
        self._before = before
        self._into = into
        self._coloured = has_colour(colour, self._stream)
        self._is_optional = False
        self._lost: OSError | InputOutput | None = None
        self._needs_pager = False
        self._pager: Pager | None = None

    def open_pager(self) -> None:
        """From the next write on, send the output to the user's pager if stdout is a terminal."""
        self._needs_pager = self._into is None and self.terminal is not None

    def close(self) -> None:
        """Wait until the user has left the pager, if there is one."""
        if self._pager is not None:
            self._pager.close()

    @contextmanager
    def optional(self) -> Iterator[None]:
        """Finish the block even if stdout is closed or full, because the work in it matters more than its output.

        Afterwards raise Exit (141) if the reader has closed the pipe, or the first OSError or InputOutput.
        """
        self._is_optional, before = True, signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        try:
            yield
        finally:
            self.flush()
            signal.signal(signal.SIGPIPE, before)
            self._is_optional = False
        if isinstance(self._lost, BrokenPipeError):
            raise Exit(UNREAD)
        if self._lost is not None:
            raise self._lost

    @property
    def _stream(self) -> TextIO | None:
        return self._into or sys.stdout

    @property
    def is_lost(self) -> bool:
        """True if output inside `optional` could not be written."""
        return self._lost is not None

    def text(self, text: str) -> None:
        """Write text verbatim. Raise InputOutput if stdout is closed and OSError if writing fails, except inside
        `optional`. Raise Exit if the user has left the pager.
        """
        self._before()
        if self._needs_pager:
            self._start_pager()
        with self._writing():
            if self._stream is None:
                raise InputOutput("standard output is closed")
            self._stream.write(text)

    def _start_pager(self) -> None:
        from omcli.cli.terminal import Pager

        self._needs_pager = False
        try:
            self._pager = Pager.start()
        except BadInput as error:
            self._warn(error.message)
        if self._pager is not None:
            self._into = self._pager.stream

    def line(self, text: str) -> None:
        """Write a line, with control characters made visible."""
        self.text(f"{printable(text)}\n")

    def flush(self) -> None:
        with self._writing():
            if self._stream is not None:
                self._stream.flush()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, InputOutput) as error:
            if self._pager is not None and isinstance(error, BrokenPipeError):
                raise Exit(0) from None
            if not self._is_optional:
                raise
            self._lost = self._lost or error
            drop_output()

    def document(self, content: Mapping[str, object]) -> None:
        """Write one JSON document."""
        self.text(f"{json_line({'schema': SCHEMA, **content})}\n")

    def json_line(self, content: Mapping[str, object]) -> None:
        """Write one object as a line of JSON Lines."""
        self.text(f"{json_line(content)}\n")

    def row(
        self,
        row: Observation,
        *,
        notation: Notation | None = None,
        remark: str = "",
        marked: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Write a row as `om log` does or in a notation, followed by the remark in parentheses, if there is one. A row
        takes one line, or several on a narrow terminal. On any terminal, the `marked` parts of its text stand out.
        """
        remark = f" ({remark})" if remark else ""
        if (terminal := self.terminal) is not None and notation is None:
            head = (f"[{minute(row.dated)}]", str(row.priority), f"{row.type}{_marks(row)}:")
            text = printable(one_line(row.text))
            self.text(terminal.row(handle(row.id), head, text, remark=f"{gone(row)}{remark}", marked=marked))
            return
        shown = printable(f"{row_line(row) if notation is None else notation_line(row, notation)}{remark}")
        if terminal is not None:
            self.text(terminal.entry(*shown.split(" ", 1)))
            return
        style = _STYLES.get(row.priority) if self._coloured else None
        self.text(f"{style}{shown}{_PLAIN}\n" if style else f"{shown}\n")

    def entry(self, name: str, text: str, *, marked: Sequence[tuple[int, int]] = ()) -> None:
        """Write a name or handle, followed by text, whose `marked` parts stand out on a terminal."""
        if self.terminal is None:
            self.line(f"{name} {text}")
        else:
            self.text(self.terminal.entry(printable(name), printable(text), marked=marked))

    def fields(self, pairs: Iterable[tuple[str, str]], *, width: int = 12, gap: int = 2) -> None:
        """Write one name and value per line, with names padded to `width`."""
        if self.terminal is None:
            below = "\n" + " " * (width + gap)
            for name, value in pairs:
                self.line(f"{name:<{width}}{' ' * gap}{printable(value).replace(chr(10), below)}")
        else:
            shown = [(printable(name), printable(value)) for name, value in pairs]
            self.text(self.terminal.fields(shown, width=width) if shown else "")

    def shares(self, found: Sequence[tuple[str, str, float]], *, width: int = 12) -> None:
        """Write one name and text per line and, on a terminal, a bar as long as the share, 1.0 at most."""
        if self.terminal is None:
            self.fields([(name, text) for name, text, _ in found], width=width)
        elif found:
            self.text(self.terminal.shares(found, width=width))

    def paragraph(self, text: str) -> None:
        """Write text, followed by an empty line."""
        if self.terminal is None:
            self.line(text)
            self.line("")
        else:
            self.text(f"{self.terminal.paragraph(printable(text))}\n")

    def section(self, title: str, text: str) -> None:
        """Write an empty line, a title and the lines of `text`, which are indented so that none looks like a title."""
        lines = [f"  {each}".rstrip() for each in printable(text).rstrip("\n").split("\n")] if text else []
        title = printable(one_line(title))
        if self.terminal is None:
            self.text("".join(f"{each}\n" for each in ("", f"--- {title}", *lines)))
        else:
            shown = self.terminal.paragraph("\n".join(lines)) if lines else ""
            self.text(f"\n{self.terminal.heading(title)}{shown}")

    def results(self, title: str, found: Sequence[tuple[str, str, str, str]]) -> None:
        """Write a title and, for each check, its result, name and text, with a hint on a line of its own."""
        cells = [tuple(printable(one_line(cell)) for cell in check) for check in found]
        if self.terminal is not None:
            self.text(self.terminal.results(title, cells))
            return
        self.line(title)
        for result, name, text, hint in cells:
            self.line(f"{result:<4}{_GAP}{name:<{_WIDEST_CHECK}}{_GAP}{text}")
            if hint:
                self.line(f"{'':<{_WIDEST_CHECK + 4 + 2 * len(_GAP)}}{hint}")

    def settings(self, written: Mapping[str, str], origins: Mapping[str, str]) -> None:
        """Write settings as in a configuration file, with their origins, if any are given, as comments."""
        if self.terminal is not None:
            self.text(self.terminal.settings({key: printable(value) for key, value in written.items()}, origins))
            return
        lines = {key: f"{key} = {value}" for key, value in written.items()}
        widest = min(_WIDEST_SETTING, max(map(len, lines.values())))
        for key, shown in lines.items():
            self.line(f"{shown:<{widest}}  # {origins[key]}" if origins else shown)

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: Collection[str] = (), cut: str = ""
    ) -> None:
        """Write aligned columns. On a terminal, cells in `wrapped` columns may take several lines, and those of the
        column `cut` are cut to fit.
        """
        cells = [[printable(one_line(cell)) for cell in row] for row in rows]
        if self.terminal is not None:
            self.text(self.terminal.table(header, cells, wrapped=wrapped, cut=cut))
            return
        widths = [max(map(_columns, column)) for column in zip(header, *cells, strict=True)]
        for at, row in enumerate([header, *cells]):
            padded = (cell + " " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=True))
            line = _GAP.join(padded).rstrip()
            self.text(f"{_BOLD}{line}{_PLAIN}\n" if at == 0 and self._coloured else f"{line}\n")

    @cached_property
    def terminal(self) -> Terminal | None:
        """The terminal if stdout is one, otherwise None."""
        if self._stream is None or not self._stream.isatty():
            return None
        from omcli.cli.terminal import Terminal

        return Terminal(has_colour=self._coloured)


def _columns(text: str) -> int:
    """Return the width of a line of text: two columns for a wide character, none for a combining or invisible one."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    shown = (character for character in text if category(character) not in _ZERO_WIDTH)
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in shown)


def row_line(row: Observation) -> str:
    """Return `HANDLE [YYYY-MM-DD HH:MM] PRIORITY TYPE: TEXT`. All parts up to the type begin in fixed columns, for
    `cut` and `grep`.

    A status of done or resolved and `unverified` follow the type, and the state of a hidden row follows the text in
    parentheses.
    """
    return (
        f"{handle(row.id)} [{minute(row.dated)}] {row.priority:<{_WIDEST_PRIORITY}} "
        f"{row.type}{_marks(row)}: {one_line(row.text)}{gone(row)}"
    )


def _marks(row: Observation) -> str:
    settled = f" {row.status}" if row.status in (Status.DONE, Status.RESOLVED) else ""
    return f"{settled} {UNVERIFIED}" if UNVERIFIED in row.tags else settled


def notation_line(row: Observation, notation: Notation) -> str:
    """Return the handle, the row in a notation and, for a hidden row, its state in parentheses."""
    return f"{handle(row.id)} {notation.render(line(row))}{gone(row)}"


def gone(row: Observation) -> str:
    """Return a space and the state of a hidden row in parentheses; empty for a visible row."""
    return "" if row.is_visible else f" ({state(row)})"


def state(row: Observation) -> str:
    """Return the state of a row: superseded, dropped, or `in sight`, as JSON still calls a visible row."""
    return "in sight" if row.is_visible else "superseded" if row.superseded_by else "dropped"
