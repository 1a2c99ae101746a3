"""What is generated is up to date, and what it says is well-formed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.generate import ROOT, generated


@pytest.mark.parametrize(("path", "text"), [pytest.param(path, text, id=path.name) for path, text in generated()])
def test_generated_files_are_up_to_date(path: Path, text: str) -> None:
    """Man pages, completions and the map follow the code."""
    assert path.is_file(), f"{path.name} is missing; run: python -m tests.docs.generate"
    assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale; run: python -m tests.docs.generate"


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
@pytest.mark.parametrize("page", sorted((ROOT / "man").glob("*.1")), ids=lambda page: page.name)
def test_man_pages_have_no_warnings(page: Path) -> None:
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "MANROFFSEQ": "", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )
    assert (done.returncode, done.stderr) == (0, "")
