"""Comparison of rows: coverage of one by others, and tombstones of forgotten text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omcli.base.patterns import lazily
from omcli.memory.message import digest
from omcli.memory.observation import TOOL_EVENTS, Draft, Observation
from omcli.text.anchors import anchors
from omcli.text.similarity import SPEAKERS, content_terms, folded_text, says

_WORDS_REPEATED = 0.75
_HALF = lazily("[\ud800-\udfff]")
"""Half of a surrogate pair, which stores replace by U+FFFD."""


def row_says(row: Observation | Draft, text: str) -> bool:
    """Return True if the row's text, tags or metadata contain a text normalised by `folded_text`."""
    return any(text in folded_text(part) for part in _parts(row))


def _parts(row: Observation | Draft) -> Iterator[str]:
    yield row.text
    yield from row.tags
    if row.metadata:
        from omcli.memory.row_json import json_line  # noqa: PLC0415 - few look at it

        yield json_line(dict(row.metadata))


def covers(rows: Sequence[Draft], draft: Draft) -> bool:
    """Return True if rows of the same messages cover a row.

    A message may give several rows, so all rows that share a message count together.
    """
    about = [row.text for row in rows if set(row.sources) & set(draft.sources)]
    return bool(about) and says("\n".join(about), draft.text)


def repeats(draft: Draft, rows: Sequence[Draft]) -> bool:
    """Return True if a row says no more than rows of the same messages do together.

    They must contain all of its names and three quarters of its words, common ones included, since the row is dropped
    then.
    """
    told = "\n".join(row.text for row in rows if set(row.sources) & set(draft.sources))
    words = content_terms(draft.text) - SPEAKERS
    lower = told.lower()
    known = sum(word.lower() in lower for word in words - content_terms(told)) + len(words & content_terms(told))
    is_named = all(name.lower() in lower for name in anchors(draft.text))
    return bool(told) and is_named and known >= _WORDS_REPEATED * len(words)


def tombstone(row: Observation) -> str:
    """Return the digest that identifies the text of a row: 32 hex digits.

    Speech is the same in every session; a tool event belongs to its own session.
    """
    return tombstone_to_be(row, session=row.session)


def tombstone_to_be(said: Draft | Observation, *, session: str | None) -> str:
    """Return the digest of a row or draft in this session."""
    return tombstone_of(said.text, session=session if said.type in TOOL_EVENTS else None)


def tombstone_of(text: str, *, session: str | None = None) -> str:
    """Return the digest of a text, in every session or in one; case and spaces are ignored."""
    return digest(session, folded_text(_HALF.sub("\ufffd", text)))
