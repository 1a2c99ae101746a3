"""Where transcripts lie: in the folders of the agents whose formats are known, and in those that somebody names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from omcli.formats.table import NAMES, named

TRANSCRIPTS = (".jsonl", ".ndjson")
"""How names of files end that are transcripts, or should be."""
_IN_FOLDERS = (*TRANSCRIPTS, ".json")
"""How the names end that count in a folder; what is named itself may be called anything."""


def kept_by_agents(environment: Mapping[str, str]) -> Iterator[Path]:
    """The transcripts in the agents' own folders, as far as there are any."""
    for format_name in NAMES:
        place = named(format_name).place
        if place is None:
            continue
        other = environment.get(place.variable, "").strip() if place.variable else ""
        for pattern in place.patterns:
            for home in (other,) if other else place.homes:
                yield from sorted(Path(home).expanduser().glob(pattern))


def within(place: Path) -> Iterator[Path]:
    """A file, or the transcripts in a folder and the folders in it. Raises OSError where there is no such place."""
    if not stat.S_ISDIR(place.stat().st_mode):
        yield place
        return
    for folder, folders, files in os.walk(place):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(_IN_FOLDERS))
