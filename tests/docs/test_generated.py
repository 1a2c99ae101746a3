"""What is generated is up to date, and what it says is well-formed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.generate import ROOT, generated

PAGES = sorted((ROOT / "man").glob("man?/*"))
PATH = "/usr/bin:/bin:/opt/homebrew/bin"


@pytest.mark.parametrize(("path", "text"), [pytest.param(path, text, id=path.name) for path, text in generated()])
def test_generated_files_are_up_to_date(path: Path, text: str) -> None:
    """Man pages and completions follow the code."""
    assert path.is_file(), f"{path.name} is missing; run: python -m tests.docs.generate"
    assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale; run: python -m tests.docs.generate"


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_man_pages_pass_mandoc_lint() -> None:
    """Generated and written ones: no error, no warning and no style advice."""
    done = subprocess.run(
        ["mandoc", "-T", "lint", *map(str, PAGES)], capture_output=True, text=True, check=False, env={"PATH": PATH}
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_pages_have_no_warnings_of_groff() -> None:
    for page in PAGES:
        done = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": PATH, "MANROFFSEQ": "", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        )
        assert (done.returncode, done.stderr) == (0, ""), page.name
