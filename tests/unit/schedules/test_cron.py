"""A crontab: what cron and the shell read is what was meant, and lines of others stay as they are."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.schedules.cron import quoted, with_line
from tests.strategies import examples

WORDS = st.text(st.sampled_from("ab/-. '\"\\%$!#`;&|<>()*?~{}[]é"), max_size=12)
LINES = st.lists(
    st.sampled_from(
        [
            b"", b"# notes", b"MAILTO=ada", b"0 4 * * * backup", b"\t@reboot x", b"5 5 * * * echo om:consolidate",
            b"# the line below is marked # om:consolidate", b"* * * * * caf\xe9 \xff", b"0 1 * * * x # om:consolidated",
        ]
    ),
    max_size=6,
)  # fmt: skip
OURS = b"0 3 * * * /bin/om consolidate # om:consolidate\n"


def as_vixie(text: str) -> str:
    """Text that cron passes to the shell: without a backslash before `%` or another backslash."""
    return re.sub(r"\\([%\\])", r"\1", text)


def as_debian(text: str) -> str:
    """Only one before `%` goes."""
    return text.replace(r"\%", "%")


def as_busybox(text: str) -> str:
    """None goes, and `%` is a letter like others."""
    return text


@pytest.mark.parametrize("read", [as_vixie, as_debian, as_busybox])
@given(lines=st.lists(st.lists(WORDS, min_size=1, max_size=6), min_size=5, max_size=15))
@examples(10)
def test_a_word_arrives_unchanged_through_any_cron(read: Callable[[str], str], lines: list[list[str]]) -> None:
    """And no `%` is left that cron would make a line break of."""
    written = [" ".join(map(quoted, words)) for words in lines]
    assert not any(re.search(r"(?<!\\)%", line) for line in written)
    script = "\n".join(f"for each in {read(line)}; do printf '%s\\0' \"$each\"; done; echo" for line in written)
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True)
    assert [line.split("\0")[:-1] for line in done.stdout.decode().splitlines()] == lines


@given(before=LINES, after=LINES, ends=st.booleans(), other=st.sampled_from([b"", OURS, OURS.replace(b"3", b"5")]))
def test_lines_of_others_stay_as_they_are(before: list[bytes], after: list[bytes], ends: bool, other: bytes) -> None:
    """To the byte, in their order; installing twice leaves one line, and removing leaves what was there before."""
    foreign = b"\n".join([*before, *after]) + (b"\n" if ends else b"")
    table = b"".join(line + b"\n" for line in before) + other + b"\n".join(after) + (b"\n" if ends else b"")
    once = with_line(table, OURS, "consolidate")
    assert once.splitlines().count(OURS.rstrip()) == 1
    assert with_line(once, OURS, "consolidate") == once
    assert with_line(once, b"", "consolidate").rstrip(b"\n") == with_line(table, b"", "consolidate").rstrip(b"\n")
    assert with_line(foreign, b"", "consolidate") == foreign


def test_a_line_is_replaced_in_place() -> None:
    """And a second one of ours goes."""
    old = OURS.replace(b"3", b"5")
    assert with_line(b"a\n" + old + b"b\n" + old, OURS, "consolidate") == b"a\n" + OURS + b"b\n"
    assert with_line(b"a", OURS, "consolidate") == b"a\n" + OURS
    assert with_line(b"a\r\n" + old + b"# x # om:consolidate\n", b"", "consolidate") == b"a\r\n# x # om:consolidate\n"
