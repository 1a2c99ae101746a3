"""The edit that wrote a line: the last one that brought it in."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from omcli.observers.rules.files import FileLine, LineMatch, line_match
from omcli.observers.rules.tool_events import FileChange

CRANE, QUAY = "crane_load = 40", "quay_length = 90"


def line(text: str, *others: str) -> FileLine:
    """The first of these lines."""
    return FileLine(lines=(text, *others), place=0)


def change(old: str = "", new: str = "", *, whole: bool = False) -> list[FileChange]:
    """An edit of one part or, if `whole`, of the whole file."""
    return [FileChange(path="port.py", old=old, new=new, creates=whole)]


def writer(wanted: FileLine, *edits: Sequence[FileChange]) -> int | None:
    match = line_match(wanted, edits)
    return match.edit if match is not None and match.is_exact else None


def test_an_edit_that_only_repeats_a_line_did_not_write_it() -> None:
    assert writer(line(CRANE), change(new=CRANE), change(CRANE, f"{CRANE}\n{QUAY}")) == 0
    assert writer(line(QUAY), change(new=CRANE), change(CRANE, f"{CRANE}\n{QUAY}")) == 1


def test_it_is_taken_for_the_writer_if_no_other_is_remembered() -> None:
    assert writer(line(CRANE), change(QUAY, "x = 1"), change(f"{CRANE}\n{QUAY}", CRANE)) == 1


def test_a_line_that_was_removed_and_added_again_is_that_of_the_later_edit() -> None:
    assert writer(line(CRANE), change(new=CRANE), change(CRANE, QUAY), change(QUAY, CRANE)) == 2


def test_writing_the_whole_file_again_adds_only_what_was_not_in_it() -> None:
    first, second = change(new=CRANE, whole=True), change(new=f"{CRANE}\n{QUAY}", whole=True)
    assert (writer(line(CRANE), first, second), writer(line(QUAY), first, second)) == (0, 1)
    assert writer(line(CRANE), first, change(new=QUAY, whole=True), second) == 2


def test_indentation_does_not_count() -> None:
    assert writer(line(f"        {CRANE}"), change(new=f"  {CRANE}\n")) == 0


@pytest.mark.parametrize("bare", ["}", "", "    else:", "end"])
def test_a_line_that_says_nothing_goes_with_its_neighbours(bare: str) -> None:
    edits = change(new=f"{CRANE}\n{bare}"), change(new=f"{bare}\n{QUAY}"), change(new=bare)
    assert writer(FileLine(lines=(bare, QUAY), place=0), *edits) == 1


def test_a_changed_line_is_found_by_most_of_its_words() -> None:
    match = line_match(
        line("crane_load = max(40, ballast)"), [change(new="berth = 7"), change(new="crane_load = max(40)")]
    )
    assert match == LineMatch(edit=1, text="crane_load = max(40)", is_exact=False)


def test_lines_with_few_words_in_common_are_not_alike() -> None:
    assert line_match(line("crane_load = 40"), [change(new="return 40"), change(new="ferry = tide * 2")]) is None
    assert line_match(line("}"), [change(new="}")]) is None
    assert line_match(line(CRANE), []) is None
