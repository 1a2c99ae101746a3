"""A scheduler's files and programs: files are marked as om's and replaced at once, others are left alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from omcli.base.errors import CannotCreate, InputOutput
from omcli.base.record import record
from omcli.schedules.job import EntryAction, EntryChange, EntryText


def put(parts: Iterable[EntryText], mark: str, *, dry_run: bool) -> tuple[EntryChange, ...]:
    """Writes the parts down where they are not written yet, all of which hold the mark.

    Raises CannotCreate, also where a file of somebody else has one of their names; nothing was written then.
    """
    planned = [(part, _step(part, mark)) for part in parts]
    for part, step in planned:
        if step is not EntryAction.KEEP and not dry_run:
            _write(Path(part.place), part.text)
    return tuple(EntryChange(place=part.place, step=step) for part, step in planned)


def take(paths: Iterable[Path], mark: str, *, dry_run: bool) -> tuple[EntryChange, ...]:
    """Takes those away that hold the mark. Raises InputOutput."""
    ours = [path for path in paths if mark in (_content(path) or "")]
    for path in ours:
        if not dry_run:
            unlink(path)
    return tuple(EntryChange(place=str(path), step=EntryAction.REMOVE) for path in ours)


def unlink(path: Path) -> None:
    """Takes a file away, if it is there. Raises InputOutput."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputOutput(f"cannot remove {path}: {error.strerror}") from error


def _step(part: EntryText, mark: str) -> EntryAction:
    content = _content(Path(part.place))
    if content is None:
        return EntryAction.CREATE
    if mark not in content:
        raise CannotCreate(f"{part.place} is there already, and not of om's making", hint="move it out of the way")
    return EntryAction.KEEP if content == part.text else EntryAction.REPLACE


def _content(path: Path) -> str | None:
    try:
        return path.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputOutput(f"cannot read {path}: {error.strerror}") from error


def _write(path: Path, text: str) -> None:
    """Who reads it meanwhile sees the old text or the new one."""
    path = Path(os.path.realpath(path))  # a link stays one
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(path)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise CannotCreate(f"cannot create {path}: {error.strerror}") from error


_SECONDS = 30.0


@record
class ProgramResult:
    """What a program said."""

    code: int
    output: bytes
    complaint: str
    """The first line of what it wrote to stderr."""


def answer(*words: str, given: bytes = b"") -> ProgramResult | None:
    """Runs a program; None where there is none of that name. Raises InputOutput for one that does not end or start.

    It speaks English, so that what it says can be told apart.
    """
    try:
        process = subprocess.run(
            words,
            input=given,
            capture_output=True,
            env={**os.environ, "LC_ALL": "C"},
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired:
        raise InputOutput(f"`{' '.join(words)}` has not ended for {_SECONDS:g} seconds") from None
    except OSError as error:
        raise InputOutput(f"`{words[0]}` cannot be started: {error.strerror}") from error
    said = process.stderr.decode(errors="replace").strip().splitlines()
    return ProgramResult(code=process.returncode, output=process.stdout, complaint=said[0].strip() if said else "")


def first_complaint(*commands: tuple[str, ...]) -> str | None:
    """Runs one command after another up to the first one that fails, and gives what that said; None if none did."""
    for command in commands:
        found = answer(*command)
        if found is None:
            return f"there is no `{command[0]}` here"
        if found.code:
            return found.complaint or f"`{' '.join(command)}` ended with {found.code}"
    return None
