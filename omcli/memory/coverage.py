"""Rows compared: do they say what a text or another row says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omcli.base.patterns import lazily
from omcli.memory.message import digest
from omcli.memory.observation import TOOL_EVENTS, Draft, Observation
from omcli.text.anchors import anchors
from omcli.text.similarity import SPEAKERS, says, significant_terms, wording

_WORDS_REPEATED = 0.75
_HALF = lazily("[\ud800-\udfff]")
"""Of a surrogate pair: stores have U+FFFD in its place."""


def row_says(row: Observation | Draft, text: str) -> bool:
    """Whether a part of a row - what it says, its tags, its metadata - contains a text as `wording` has it."""
    return any(text in wording(part) for part in _parts(row))


def _parts(row: Observation | Draft) -> Iterator[str]:
    yield row.text
    yield from row.tags
    if row.metadata:
        from omcli.memory.row_json import json_line  # noqa: PLC0415 - few look at it

        yield json_line(dict(row.metadata))


def covers(rows: Sequence[Draft], draft: Draft) -> bool:
    """Whether rows of the same messages say what a row says.

    A message may come to several rows, so those that share a message with it count together.
    """
    about = [row.text for row in rows if set(row.sources) & set(draft.sources)]
    return bool(about) and says("\n".join(about), draft.text)


def repeats(draft: Draft, rows: Sequence[Draft]) -> bool:
    """Whether a row says no more than rows of the same messages do together.

    They have all of its names and three quarters of its words, common ones as well: what is left out for that is gone.
    """
    told = "\n".join(row.text for row in rows if set(row.sources) & set(draft.sources))
    words = significant_terms(draft.text) - SPEAKERS
    lower = told.lower()
    known = sum(word.lower() in lower for word in words - significant_terms(told)) + len(
        words & significant_terms(told)
    )
    is_named = all(name.lower() in lower for name in anchors(draft.text))
    return bool(told) and is_named and known >= _WORDS_REPEATED * len(words)


def tombstone(row: Observation) -> str:
    """The digest by which what a row says is known again: 32 hex digits.

    What somebody said is the same wherever it is said; what a tool did is another thing in another session.
    """
    return tombstone_to_be(row, session=row.session)


def tombstone_to_be(said: Draft | Observation, *, session: str | None) -> str:
    """The digest of what is, or will be, a row of this session."""
    return tombstone_of(said.text, session=session if said.type in TOOL_EVENTS else None)


def tombstone_of(text: str, *, session: str | None = None) -> str:
    """The digest of a text, wherever it is said or in one session; case and spaces do not matter."""
    return digest(session, wording(_HALF.sub("\ufffd", text)))
