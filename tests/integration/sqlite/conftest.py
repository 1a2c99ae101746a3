"""Where stores lie that are opened and closed by the hundred."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# On a disk each close is synchronised, which takes 20 times as long.
_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where there is such a place."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as name:
        yield Path(name)
