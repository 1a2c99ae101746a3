"""Everything on stdout: data, and nothing else."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum

from omcli.base.errors import InputOutput
from omcli.cli.console import UNREAD, Exit, discard_stdout
from omcli.memory.notation import Notation, line
from omcli.memory.observation import Observation, Priority, Status, handle
from omcli.memory.row_json import json_line
from omcli.text.clean import one_line, printable
from omcli.text.dates.instants import minute

SCHEMA = 1
"""Of JSON output: keys may be added under the same number, never changed or removed."""

_COLOURS = {Priority.HIGH: "1", Priority.LOW: "2"}
_GAP = "  "
_FEW = 4
"""Characters of a column that are always shown."""
_WIDEST_PRIORITY = max(len(priority) for priority in Priority)


class Colour(StrEnum):
    """When to use colour; it never carries meaning."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Output:
    """Writes a run's data."""

    def __init__(self, colour: Colour = Colour.AUTO, *, before: Callable[[], None] = lambda: None) -> None:
        """`before` is called whenever something is about to be written."""
        self._before = before
        self._coloured = _is_coloured(colour)
        self._is_optional = False
        self._lost: OSError | InputOutput | None = None

    @contextmanager
    def optional(self) -> Iterator[None]:
        """For work that is done for more than what it prints: inside, nothing ends because stdout is closed or full.

        That comes afterwards: the end with 141 where nobody reads any more, else OSError or InputOutput.
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
    def is_lost(self) -> bool:
        """Whether something could not be written, where that is `optional`."""
        return self._lost is not None

    def text(self, text: str) -> None:
        """Text as it is, to the byte."""
        self._before()
        with self._losing():
            if sys.stdout is None:
                raise InputOutput("standard output is closed")
            sys.stdout.write(text)

    def line(self, text: str) -> None:
        """A line of text; control characters in it are made visible."""
        self.text(f"{printable(text)}\n")

    def flush(self) -> None:
        """Sends what has been written on its way."""
        with self._losing():
            if sys.stdout is not None:
                sys.stdout.flush()

    @contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, InputOutput) as error:
            if not self._is_optional:
                raise
            self._lost = self._lost or error
            discard_stdout()

    def document(self, content: Mapping[str, object]) -> None:
        """One JSON document."""
        self.text(f"{json_line({'schema': SCHEMA, **content})}\n")

    def json_line(self, content: Mapping[str, object]) -> None:
        """One object of a JSON Lines stream."""
        self.text(f"{json_line(content)}\n")

    def row(self, row: Observation, *, notation: Notation | None = None) -> None:
        """A row of memory on one line, as the log has it or in a notation."""
        shown = printable(row_line(row) if notation is None else notated_line(row, notation))
        style = _COLOURS.get(row.priority)
        self.text(f"\033[{style}m{shown}\033[0m\n" if self._coloured and style else f"{shown}\n")

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        cut: Collection[str] = (),
        cut_in_front: Collection[str] = (),
    ) -> None:
        """Aligned columns, two spaces apart.

        To fit a terminal, cells of the columns named in `cut` lose their ends, in `cut_in_front` their beginnings, and
        every heading may lose its end; all columns stay in sight.
        """

        from omcli.cli.columns import fitted, padded, width

        cells = [[printable(one_line(cell)) for cell in row] for row in rows]
        columns = list(zip(header, *cells, strict=True))
        widths = [max(map(width, column)) for column in columns]
        if sys.stdout and sys.stdout.isatty():
            import shutil

            least = [
                _FEW if name in (*cut, *cut_in_front) else max(_FEW, *map(width, column)) for name, *column in columns
            ]
            widths = _fitting(widths, least, shutil.get_terminal_size().columns - len(_GAP) * (len(header) - 1))
        for at, row in enumerate([header, *cells]):
            shown = [
                padded(fitted(cell, most, in_front=at > 0 and name in cut_in_front), most)
                for name, cell, most in zip(header, row, widths, strict=True)
            ]
            line = _GAP.join(shown).rstrip()
            self.text(f"\033[1m{line}\033[0m\n" if at == 0 and self._coloured else f"{line}\n")


def _fitting(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths that fit: the widest column gives way, and then again, as long as one has more than the least."""
    fitting = list(widths)
    while sum(fitting) > room:
        giving = [at for at, columns in enumerate(fitting) if columns > least[at]]
        if not giving:
            break
        fitting[max(giving, key=fitting.__getitem__)] -= 1
    return fitting


def row_line(row: Observation) -> str:
    """`HANDLE [YYYY-MM-DD HH:MM] PRIORITY TYPE: TEXT`: columns stay where they are, so that `cut` and `grep` work."""
    settled = f" {row.status}" if row.status in (Status.DONE, Status.RESOLVED) else ""
    return (
        f"{handle(row.id)} [{minute(row.dated)}] {row.priority:<{_WIDEST_PRIORITY}} "
        f"{row.type}{settled}: {one_line(row.text)}{gone(row)}"
    )


def notated_line(row: Observation, notation: Notation) -> str:
    """`HANDLE` and the row in a notation."""
    return f"{handle(row.id)} {notation.render(line(row))}{gone(row)}"


def gone(row: Observation) -> str:
    """What became of a row that is out of sight, in brackets behind it; nothing of one that is in sight."""
    return "" if row.is_visible else f" ({state(row)})"


def state(row: Observation) -> str:
    """Whether a row is in sight, or what became of it."""
    return "in sight" if row.is_visible else "superseded" if row.superseded_by else "dropped"


def _is_coloured(colour: Colour) -> bool:
    if colour is not Colour.AUTO:
        return colour is Colour.ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
