"""Compiled patterns that `om` keeps between runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Om
from tests.e2e.contents import remove

LINES = "".join(
    f'{{"role":"user","content":"{said}","timestamp":"2026-03-0{day}T09:00:00Z"}}\n'
    for day, said in enumerate(("Always run the tests of src/a.py first.", "No, not like that: use `b_c` instead."), 1)
)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "changed": lambda content: content[:-40] + bytes(40),
    "of another version": lambda content: content.replace(b"3.", b"2.", 1),
}


def _observed(om: Om) -> str:
    remove(om.place)
    ended = om.process("observe", "-", "--now", "2026-03-05T09:00:00Z", stdin=LINES)
    assert not ended.stderr.count("bug")
    return "".join(line[8:] for line in ended.stdout.splitlines(keepends=True))  # without handles


@pytest.fixture
def file(om: Om) -> Path:
    return om.home / ".cache/om/patterns/observe"


def test_a_second_run_reads_the_patterns_of_the_first_and_prints_the_same(om: Om, file: Path) -> None:
    first = _observed(om)
    kept = file.read_bytes()
    assert first.count("\n") == 2
    assert _observed(om) == first
    assert file.read_bytes() == kept
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [path.name for path in file.parent.iterdir()] == ["observe"]


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_written_again(om: Om, file: Path, damage: Callable[[bytes], bytes]) -> None:
    first = _observed(om)
    kept = file.read_bytes()
    file.write_bytes(damage(kept))
    assert _observed(om) == first
    assert file.read_bytes() == kept


def test_a_file_that_others_could_have_written_is_not_used(om: Om, file: Path) -> None:
    first = _observed(om)
    before = file.stat().st_ino
    file.chmod(0o666)
    assert _observed(om) == first
    assert file.stat().st_ino != before
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_cache_folder_that_cannot_be_written_is_no_error(om: Om) -> None:
    (om.home / ".cache").write_text("a file")
    assert _observed(om)
