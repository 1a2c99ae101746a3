"""Comparing rows: checks whether other rows cover one, and tombstones, the digests that recognise forgotten text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omcli.base import lazily
from omcli.memory.message import digest
from omcli.memory.observation import TOOL_EVENTS, Draft, Observation
from omcli.text.phrases import anchors, words_of
from omcli.text.similarity import SPEAKERS, content_terms, folded_text, is_distinctive, says

_WORDS_REPEATED = 0.75
_HALF = lazily("[\ud800-\udfff]")
"""Half of a surrogate pair, which stores replace with U+FFFD."""

_MARKUP = lazily("[*_`]")
_AROUND = " .!?\"'“”„«»"
"""Quotation marks and ends of sentences, which are ignored around a message."""


def row_says(row: Observation | Draft, text: str) -> bool:
    """Return True if the row's text, tags or metadata contain `text`. Normalise `text` with `folded_text` first."""
    return any(text in folded_text(part) for part in _parts(row))


def _parts(row: Observation | Draft) -> Iterator[str]:
    yield row.text
    yield from row.tags
    if row.metadata:
        from omcli.text.clean import json_line  # noqa: PLC0415 - rarely needed

        yield json_line(dict(row.metadata))


def covers(rows: Sequence[Draft], draft: Draft) -> bool:
    """Return True if the rows that share a message with `draft` together contain most of it (see `similarity.says`).

    They are taken together because one message may yield several rows.
    """
    about = [row.text for row in rows if set(row.sources) & set(draft.sources)]
    return bool(about) and says("\n".join(about), draft.text)


def repeats(draft: Draft, rows: Sequence[Draft]) -> bool:
    """Return True if the rows that share a message with `draft` make it redundant.

    This is stricter than `covers`, because a redundant draft is dropped: the rows must contain all of its anchors and
    at least three quarters of its words.
    """
    told = "\n".join(row.text for row in rows if set(row.sources) & set(draft.sources))
    words = content_terms(draft.text) - SPEAKERS
    lower = told.lower()
    known = sum(word.lower() in lower for word in words - content_terms(told)) + len(words & content_terms(told))
    is_named = all(name.lower() in lower for name in anchors(draft.text))
    return bool(told) and is_named and known >= _WORDS_REPEATED * len(words)


def tombstone(said: Draft | Observation, *, session: str | None) -> str:
    """Return the digest of a row or draft to keep when it is forgotten: 32 hex digits.

    It depends on the session if other sessions may well say the same: a tool event, or text that is not distinctive.
    """
    is_everywhere = said.type not in TOOL_EVENTS and is_distinctive(said.text)
    return tombstone_of(said.text, session=None if is_everywhere else session)


def tombstones(said: Draft | Observation, *, session: str | None) -> tuple[str, ...]:
    """Return the digests by which a row or draft is recognised as forgotten."""
    of_session = tombstone_of(said.text, session=session)
    if said.type in TOOL_EVENTS:
        return (of_session,)
    return of_session, tombstone_of(said.text), *map(message_tombstone, {said.text, words_of(said.text)})


def tombstone_of(text: str, *, session: str | None = None) -> str:
    """Return the digest of text, for one session or, if `session` is None, for all. Case and spacing are ignored."""
    return digest(session, _folded(text))


def message_tombstone(text: str) -> str:
    """Return the digest of a message's words, whoever says them, in any session. Emphasis and its end are ignored."""
    return digest("message", None, _folded(_MARKUP.sub("", text)).strip(_AROUND))


def _folded(text: str) -> str:
    return folded_text(_HALF.sub("\ufffd", text))
