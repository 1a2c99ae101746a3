"""What tells one reading of a file from another: by what rules it is read, and how the file was when it was."""

from __future__ import annotations

import os
import time
from pathlib import Path

from omcli import __version__

_TICK_NS = 2_000_000_000
"""The coarsest clock of a file system."""


def stamp(of: os.stat_result) -> str:
    """The size and time of a file, and which one it is: what has the same is not read again."""
    return f"{of.st_size}-{of.st_mtime_ns}-{of.st_ino}"


def settled_stamp(of: os.stat_result) -> str | None:
    """The same; None where the file is so young that it may be written to again within the same tick of its clock."""
    return stamp(of) if time.time_ns() - of.st_mtime_ns > _TICK_NS else None


def terms(format_name: str | None, session: str | None) -> str:
    """All that decides what a reading of a file gives, as `Origin.terms`."""
    import json

    return json.dumps([__version__, _readers(), format_name, session])


def asked(terms: str) -> tuple[str | None, str | None]:
    """The format and the session that a file was read with."""
    import json

    _, _, format_name, session = json.loads(terms)
    return format_name, session


def _readers() -> int:
    """Tells the readers of this installation from others of the same version: those may come to something else."""
    with os.scandir(Path(__file__).parents[1] / "formats") as modules:
        return max(module.stat().st_mtime_ns for module in modules if module.name.endswith(".py"))
