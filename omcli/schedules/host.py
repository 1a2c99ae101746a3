"""Files and programs of schedulers. Files with om's mark are replaced atomically; other files are never changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from omcli.base.errors import CannotCreate, InputOutput
from omcli.base.record import record
from omcli.schedules.job import EntryChange, EntryStep, EntryText


def write_files(parts: Iterable[EntryText], mark: str, *, dry_run: bool) -> tuple[EntryChange, ...]:
    """Write each part to its file unless the file already has this text, and return the changes.

    `mark`, which is part of every text, identifies om's files. Raise CannotCreate, before anything is written, if a
    file exists that is not om's. Also raise CannotCreate if a file cannot be written, and InputOutput if one cannot be
    read.
    """
    planned = [(part, _step(part, mark)) for part in parts]
    for part, step in planned:
        if step is not EntryStep.KEEP and not dry_run:
            _write(Path(part.place), part.text)
    return tuple(EntryChange(place=part.place, step=step) for part, step in planned)


def remove_files(paths: Iterable[Path], mark: str, *, dry_run: bool) -> tuple[EntryChange, ...]:
    """Remove the files that contain `mark`, and return the changes.

    Raise InputOutput if a file cannot be read or removed.
    """
    ours = [path for path in paths if mark in (_content(path) or "")]
    for path in ours:
        if not dry_run:
            remove_file(path)
    return tuple(EntryChange(place=str(path), step=EntryStep.REMOVE) for path in ours)


def remove_file(path: Path) -> None:
    """Remove a file if it exists. Raise InputOutput if it cannot be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputOutput(f"cannot remove {path}: {error.strerror}") from error


def _step(part: EntryText, mark: str) -> EntryStep:
    content = _content(Path(part.place))
    if content is None:
        return EntryStep.CREATE
    if mark not in content:
        raise CannotCreate(f"{part.place} already exists and was not created by om", hint="move it out of the way")
    return EntryStep.KEEP if content == part.text else EntryStep.REPLACE


def _content(path: Path) -> str | None:
    try:
        return path.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputOutput(f"cannot read {path}: {error.strerror}") from error


def _write(path: Path, text: str) -> None:
    """Write a file atomically. Raise CannotCreate if it cannot be written."""
    path = Path(os.path.realpath(path))  # write to a link's target, so that the link is kept
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
class CommandResult:
    code: int
    output: bytes
    error: str
    """First line of the program's stderr."""


def run_command(*words: str, given: bytes = b"") -> CommandResult | None:
    """Run a program in the C locale, or return None if it does not exist.

    Raise InputOutput if the program cannot be started or does not end in time.
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
        raise InputOutput(f"`{' '.join(words)}` did not end within {_SECONDS:g} seconds") from None
    except OSError as error:
        raise InputOutput(f"`{words[0]}` cannot be started: {error.strerror}") from error
    lines = process.stderr.decode(errors="replace").strip().splitlines()
    return CommandResult(code=process.returncode, output=process.stdout, error=lines[0].strip() if lines else "")


def first_error(*commands: tuple[str, ...]) -> str | None:
    """Run commands until one fails, and return its error; None if all succeed."""
    for command in commands:
        found = run_command(*command)
        if found is None:
            return f"`{command[0]}` was not found"
        if found.code:
            return found.error or f"`{' '.join(command)}` ended with {found.code}"
    return None
