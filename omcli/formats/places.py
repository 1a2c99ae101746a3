"""Where transcripts lie: in the folders of the agents whose formats are known, and in those that somebody names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from omcli.formats.table import NAMES, named

TRANSCRIPTS = (".jsonl", ".ndjson")
"""How names of files end that are transcripts, or should be."""


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
