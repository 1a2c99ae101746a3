"""Third-party transcripts beside the checkout, for tests that read real files; absent on most machines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("OM_TEST_SHARED", Path(__file__).parents[2] / "shared"))
TRANSCRIPTS = SHARED / "transcripts"

needs_shared = pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no shared transcripts beside this checkout")


def expected() -> dict[str, dict[str, Any]]:
    """What `expected.json` says of each file, by path; empty where the transcripts are absent."""
    index = TRANSCRIPTS / "expected.json"
    if not index.is_file():
        return {}
    files: dict[str, dict[str, Any]] = json.loads(index.read_text(encoding="utf-8"))["files"]
    return files
