"""Terminals: output drawn by rich, reading single keys, and starting editors. Imported only if a person is there."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import tty
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import IO, TextIO, cast

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.padding import Padding
from rich.rule import Rule
from rich.segment import ControlType
from rich.table import Table
from rich.text import Text

from omcli.base.errors import BadInput

_NARROWEST = 24
"""Minimum width of text in a table. If there is less room, rows are printed as paragraphs."""
_NARROWEST_CUT = 10
"""Minimum width of the column that is cut."""
_GAP = 2
_BAR = 20
"""Width of a bar, in characters."""
_STYLES = {"high": "bold", "low": "dim"}
_RESULTS = {"pass": "green", "warn": "yellow", "fail": "bold red", "skip": "dim"}


class Terminal:
    """Renders data for the width of a terminal."""

    def __init__(self, *, has_colour: bool) -> None:
        columns, lines = shutil.get_terminal_size()
        self._console = _console(StringIO(), has_colour=has_colour, width=columns, height=lines)

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: Collection[str], cut: str = ""
    ) -> str:
        """Render aligned columns. Those in `wrapped` may take several lines; cells of the column `cut` are cut to fit.
        If the columns do not fit, all rows are rendered as paragraphs.
        """
        widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
        narrowest = {**dict.fromkeys(wrapped, _NARROWEST), cut: _NARROWEST_CUT}
        needed = [min(width, narrowest.get(name, width)) for name, width in zip(header, widths, strict=True)]
        room = self._console.width - sum(needed) - _GAP * (len(header) - 1)
        if room < 0:
            return self._render(*(self._paragraph(header, row) for row in rows))
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
        for at, name in enumerate(header):
            is_number = name != "ID" and all(row[at][:1] in "0123456789$≥–" and "-" not in row[at] for row in rows)
            table.add_column(
                Text(name),
                no_wrap=name not in wrapped,
                overflow="ellipsis" if name == cut else "fold",
                min_width=needed[at],
                max_width=needed[at] + room if name == cut else None,
                justify="right" if is_number and name not in wrapped and at else "left",
            )
        for row in rows:
            table.add_row(*map(Text, row))
        return self._render(table)

    def _paragraph(self, header: Sequence[str], row: Sequence[str]) -> RenderableType:
        """Render a row as a heading, followed by a line of names and values. Empty values and `-` are left out."""
        pairs = [(name, cell) for name, cell in zip(header[1:], row[1:], strict=True) if cell and cell != "-"]
        parts = [Text.assemble((f"{name.lower()} ", "dim"), cell) for name, cell in pairs]
        heading = Text(row[0], style="bold", overflow="fold")
        return Group(heading, Padding(Text(" · ").join(parts), (0, 0, 0, _GAP)))

    def fields(self, pairs: Iterable[tuple[str, str]], *, width: int) -> str:
        """Render one name and value per line."""
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        grid.add_column(min_width=width, no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in pairs:
            grid.add_row(Text(name, style="bold"), Text(value))
        return self._render(grid)

    def shares(self, found: Iterable[tuple[str, str, float]], *, width: int) -> str:
        """Render one name, bar and text per line. The bar is full at a share of 1.0."""
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        grid.add_column(min_width=width, no_wrap=True)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for name, text, share in found:
            full = min(_BAR, round(share * _BAR))
            bar = Text.assemble(("█" * full, "red" if share >= 1 else "green"), ("░" * (_BAR - full), "dim"))
            grid.add_row(Text(name, style="bold"), bar, Text(text))
        return self._render(grid)

    def row(
        self,
        handle: str,
        head: tuple[str, str, str],
        text: str,
        *,
        remark: str,
        marked: Sequence[tuple[int, int]] = (),
    ) -> str:
        """Render a row with its handle, date, priority and type. Long text is continued below the date."""
        date, priority, type_ = head
        style = _STYLES.get(priority, "")
        marks = ((date, "dim"), (f"{priority:<6}", "red" if priority == "high" else style), (type_, "cyan"))
        shown = Text(" ").join([*(Text(*mark) for mark in marks), _text(text, marked, style=style)])
        return self.entry(handle, shown.append(remark, style="dim"))

    def entry(self, handle: str, text: Text | str, *, marked: Sequence[tuple[int, int]] = ()) -> str:
        """Render a handle, followed by text with marked parts."""
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(no_wrap=True, style="yellow")
        grid.add_column(overflow="fold")
        grid.add_row(Text(handle), _text(text, marked) if isinstance(text, str) else text)
        return self._render(grid)

    def results(self, title: str, found: Iterable[Sequence[str]]) -> str:
        """Render a heading and, for each check, its result, name and text, with a hint below the text."""
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        for width in (4, 11):
            grid.add_column(no_wrap=True, min_width=width)
        grid.add_column(overflow="fold")
        for result, name, text, hint in found:
            lines = Text(text)
            if hint:
                lines.append(f"\n{hint}", style="cyan")
            grid.add_row(Text(result, style=_RESULTS[result]), Text(name, style="bold"), lines)
        return self.heading(title) + self._render(grid)

    def settings(self, written: Mapping[str, str], origins: Mapping[str, str]) -> str:
        """Render settings as in a configuration file, with their origins, if any are given, as comments."""
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        grid.add_column(overflow="fold")
        grid.add_column(overflow="fold", style="dim")
        for key, value in written.items():
            origin = f"# {origins[key]}" if key in origins else ""
            grid.add_row(Text.assemble((key, "cyan"), " = ", value), Text(origin))
        return self._render(grid)

    def heading(self, text: str) -> str:
        """Render a heading with a line across the terminal, or without the line if the text leaves no room for it."""
        title = Text(text, style="bold", overflow="fold")
        has_room = title.cell_len + _GAP < self._console.width  # a rule would cut a longer title
        return self._render(Rule(title, style="dim", align="left") if has_room else title)

    def paragraph(self, text: str, *, style: str = "") -> str:
        """Render text, wrapped to the terminal."""
        return self._render(Text(text, style=style, overflow="fold"))

    def _render(self, *shown: RenderableType) -> str:
        with self._console.capture() as capture:
            self._console.print(*shown, sep="\n")
        return "".join(chain.from_iterable((line.rstrip(" "), "\n") for line in capture.get().splitlines()))


def _text(text: str, marked: Sequence[tuple[int, int]], *, style: str = "") -> Text:
    shown = Text(text, style=style)
    for begins, ends in marked:
        shown.stylize("bold reverse", begins, ends)
    return shown


class StatusLine:
    """Progress on the last line of a terminal, until other output replaces it.

    rich's `Live` is not used, because it hides the cursor and a run that is killed would leave it hidden.
    """

    _ERASE = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))

    def __init__(self, stream: IO[str], *, has_colour: bool) -> None:
        self._console = _console(stream, has_colour=has_colour, width=None, height=None)
        self._is_shown = False

    def show(self, text: str) -> None:
        """Replace the line. If the text is too long, only its end is shown, because the numbers are there."""
        room = self._console.width - 1
        if cell_len(text) > room:
            while cell_len(text) >= room:
                text = text[1:]
            text = f"…{text}"
        self._is_shown = True
        self._console.control(self._ERASE)
        self._console.print(Text(text, style="dim", no_wrap=True), end="")
        self._console.file.flush()

    def clear(self) -> None:
        """Erase the line."""
        if self._is_shown:
            self._is_shown = False
            self._console.control(self._ERASE)
            self._console.file.flush()


class KeyReader:
    """Reads single keys from the terminal, without waiting for Enter."""

    _ESCAPE, _INTRODUCERS, _ENDS = b"\x1b", (b"[", b"O"), (b"", b"\x04")
    _MOMENT = 0.05
    """Seconds to wait for the rest of a key that sends several bytes, such as an arrow."""

    def __init__(self) -> None:
        self._stdin = sys.stdin.fileno()
        self._usual = termios.tcgetattr(self._stdin)

    @contextmanager
    def reading(self, *, by_line: bool = False) -> Iterator[None]:
        """Read keys inside the block, or lines as usual if `by_line`. Afterwards the terminal is as it was before."""
        before = termios.tcgetattr(self._stdin)
        if by_line:
            termios.tcsetattr(self._stdin, termios.TCSANOW, self._usual)
        else:
            tty.setcbreak(self._stdin, termios.TCSANOW)
        try:
            yield
        finally:
            termios.tcsetattr(self._stdin, termios.TCSANOW, before)

    def key(self, keys: Collection[str]) -> str | None:
        """Return the next of these keys that is pressed, or None at the end of input (Ctrl-D). Others are ignored."""
        while (pressed := os.read(self._stdin, 1)) not in self._ENDS:
            if pressed == self._ESCAPE:
                self._skip_rest()
            elif (letter := pressed.decode("latin-1")) in keys:
                return letter
        return None

    def _skip_rest(self) -> None:
        """Read the rest of an arrow or function key: a letter, or `[` or `O` and all up to a letter or `~`."""
        if select.select([self._stdin], [], [], self._MOMENT)[0] and os.read(self._stdin, 1) in self._INTRODUCERS:
            while (byte := os.read(self._stdin, 1)) and byte < b"@":
                pass


class Pager:
    """A program that shows long output a screen at a time, such as `less`. It handles Ctrl-C itself."""

    def __init__(self, process: subprocess.Popen[str], stream: TextIO) -> None:
        self._process = process
        self.stream = stream
        """Stream for the output. Writing fails with BrokenPipeError once the user has left the pager."""

    @classmethod
    def start(cls) -> Pager | None:
        """Start the pager that OM_PAGER or PAGER names, or else `less`. Return None if there is none, or if the
        variable is empty or `cat`. Raise BadInput if it cannot be started.

        `less` ends at once if all fits on the screen, unless the variable LESS says otherwise.
        """
        wanted = os.environ.get("OM_PAGER", os.environ.get("PAGER", shutil.which("less") or ""))
        if wanted.strip() in ("", "cat"):
            return None
        environment = {"LESS": "FRX", **os.environ}
        try:
            process = subprocess.Popen(
                shlex.split(wanted), stdin=subprocess.PIPE, encoding="utf-8", errors="backslashreplace", env=environment
            )
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot run the pager `{wanted}`: {error}", hint="set OM_PAGER to another one") from None
        assert process.stdin is not None
        signal.signal(signal.SIGINT, lambda _number, _frame: None)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        return cls(process, cast(TextIO, process.stdin))

    def close(self) -> None:
        """Wait until the user has left the pager."""
        with suppress(BrokenPipeError):
            self.stream.close()
        self._process.wait()


def edit_file(file: Path) -> str | None:
    """Have the user edit a file in the editor that the environment names. Return the editor's command, or None if
    the environment names none. The editor handles Ctrl-C itself. Raise BadInput if it cannot be started or fails.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        return None
    before_it = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot run the editor `{editor}`: {error}") from None
    finally:
        signal.signal(signal.SIGINT, before_it)
    if code:
        raise BadInput(f"the editor `{editor}` ended with exit code {code}")
    return editor


def styled(text: str, style: str) -> str:
    """Return text with the escape codes of a style."""
    with (console := _console(StringIO(), has_colour=True, width=len(text) + 1, height=1)).capture() as capture:
        console.print(Text(text, style=style), end="", soft_wrap=True)
    return capture.get()


def _console(stream: IO[str], *, has_colour: bool, width: int | None, height: int | None) -> Console:
    """Return a rich console that prints text unchanged, without markup or highlighting."""
    return Console(
        file=stream,
        force_terminal=True,
        no_color=not has_colour,
        color_system="standard" if has_colour else None,
        width=width,
        height=height,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )
