"""Generated files are up to date, and man pages are well-formed."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.docs.generate import ROOT, generated

PAGES = sorted((ROOT / "man").glob("man?/*"))
PATH = "/usr/bin:/bin:/opt/homebrew/bin"


def test_generated_files_are_up_to_date() -> None:
    """Man pages and completions follow the code."""
    stale = [path.name for path, text in generated() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    assert not stale, f"run: python -m tests.docs.generate ({', '.join(stale)})"


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_man_pages_pass_mandoc_lint() -> None:
    """Generated and written ones: no error and no warning."""
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *map(str, PAGES)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": PATH},
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_pages_have_no_warnings_of_groff() -> None:
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", *map(str, PAGES)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": PATH, "MANROFFSEQ": "", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )
    assert (done.returncode, done.stderr) == (0, "")
