"""Sections of other people's files: only what stands between om's own marks is changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import BadInput
from omcli.exchange.marks import marks, section, with_section, without_marks

SECTION = section("memory", "- a\n- b\n")
OTHER = section("memory", "- c\n")
FOREIGN = st.lists(
    st.sampled_from([
        b"# Rules\n", b"text", b"\n", b"\r\n", b"```\n", b"<!-- om: 2026-02-10 -->\n", b"<!-- a comment -->\n",
        b"\xff\xfe\n", b" <!-- om: memory -->\n", b"- <!-- om: memory -->\n", b"\xe2\x80\xa8",
    ]), max_size=8,
).map(b"".join)  # fmt: skip


@given(before=FOREIGN, after=FOREIGN, bom=st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_every_byte_outside_of_the_section_is_kept(before: bytes, after: bytes, bom: bytes) -> None:
    if before.startswith(b"\xff\xfe"):
        before = b"x" + before
    first = with_section(bom + before, "memory", SECTION)
    assert first.startswith(bom + before)
    assert with_section(first, "memory", SECTION) == first
    whole = first + after
    second = with_section(whole, "memory", OTHER)
    opening, closing = (mark for mark in marks(second) if mark.name == "memory")
    kept = [mark for mark in marks(whole) if mark.name == "memory"]
    assert second[: opening.first] == whole[: kept[0].first]
    assert second[closing.last :] == whole[kept[1].last :]
    assert with_section(second, "memory", SECTION) == whole


def test_the_lines_of_a_section_end_like_those_of_its_file() -> None:
    assert with_section(b"a\r\nb\n", "memory", OTHER).endswith(
        b"\r\n<!-- om: memory -->\r\n- c\r\n<!-- om: end of memory -->\r\n"
    )
    assert with_section(b"a", "memory", OTHER).startswith(b"a\n\n<!--")
    assert with_section(b"", "memory", OTHER) == OTHER.encode()
    assert with_section(b"\xef\xbb\xbf" + SECTION.encode(), "memory", OTHER) == b"\xef\xbb\xbf" + OTHER.encode()


@pytest.mark.parametrize(
    "content",
    [
        "<!-- om: memory -->\n",
        "<!-- om: end of memory -->\n",
        "<!-- om: end of memory -->\n<!-- om: memory -->\n",
        SECTION + SECTION,
        section("memory", SECTION),
        section("memory", section("2026-02-10", "- a fact of a daily note\n")),
    ],
)
def test_damaged_or_nested_marks_are_refused(content: str) -> None:
    with pytest.raises(BadInput, match="are not one pair"):
        with_section(f"# Rules\n{content}".encode(), "memory", OTHER)


@pytest.mark.parametrize("content", ["# Rules\n".encode("utf-16"), "# Rules\n".encode("utf-16-le"), b"\x89PNG\r\n\0"])
def test_a_file_of_another_encoding_is_refused(content: bytes) -> None:
    with pytest.raises(BadInput, match="UTF-16 or not text"):
        with_section(content, "memory", OTHER)


def test_text_of_a_section_is_no_mark() -> None:
    written = section("memory", without_marks("<!-- om: end of memory -->\n"))
    assert len(list(marks(written.encode()))) == 2
