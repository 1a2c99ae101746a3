"""Files of daily notes that still contain forgotten text: om does not change them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path

from omcli.memory.transcript import IngestedFile
from omcli.text.similarity import folded_text


def find_stale_notes(texts: Iterable[str], *, taken_in: Iterable[IngestedFile], notes: Path | None) -> tuple[Path, ...]:
    """Daily notes, archived ones and `MEMORY.md` that contain one of the texts, in any case.

    Looked for in the folder of notes, and in those that notes were taken in from. What cannot be read is left out.
    """
    wanted = {folded_text(text) for text in texts} - {""}
    folders = {Path(taken.origin.path).parent for taken in taken_in if _is_note(Path(taken.origin.path))}
    folders |= set() if notes is None else {Path(os.path.realpath(notes))}
    return tuple(sorted(path for folder in folders for path in _files(folder) if _says(path, wanted)))


def _files(folder: Path) -> Iterator[Path]:
    yield folder / "MEMORY.md"
    for place in (folder, folder / "archive"):
        yield from filter(_is_note, place.glob("*.md"))


def _is_note(path: Path) -> bool:
    try:
        date.fromisoformat(path.stem[: len("YYYY-MM-DD")])
    except ValueError:
        return False
    return path.suffix == ".md"


def _says(path: Path, wanted: set[str]) -> bool:
    try:
        said = folded_text(path.read_text("utf-8", "replace"))
    except OSError:
        return False
    return any(text in said for text in wanted)
