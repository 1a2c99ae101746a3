"""Comparing rows and messages with given text, and with forgotten text, which is recognised by digests (tombstones)."""

from __future__ import annotations

from collections.abc import Iterator

from omcli.base import lazily
from omcli.memory.message import digest
from omcli.memory.observation import TOOL_EVENTS, Draft, Observation
from omcli.text.phrases import words_of
from omcli.text.similarity import folded_text, is_distinctive, said_words

_HALF = lazily("[\ud800-\udfff]")
"""Half of a surrogate pair, which stores replace with U+FFFD."""
_EMPHASIS, _AROUND = lazily("[*_`]"), " .!?\"'“”„«»"
"""Characters that digests of former versions ignore: emphasis anywhere in a message, and other marks around it."""
_HEADINGS = lazily(r"\A(?: {0,3}#{1,6}[ \t][^\n]*\n\s*)+(?=\S)")
_SPACE = lazily(r"(?<![0-9]) | (?![0-9])")
"""Space that digests ignore, because emphasis and line ends may split words. Spaces between numbers are kept."""


def row_says(row: Observation | Draft, text: str) -> bool:
    """Return True if the row's text, tags or metadata contain `text`. Normalise `text` with `folded_text` first."""
    return any(text in folded_text(part) for part in _parts(row))


def _parts(row: Observation | Draft) -> Iterator[str]:
    yield row.text
    yield from row.tags
    if row.metadata:
        from omcli.text.clean import json_line  # noqa: PLC0415 - rarely needed

        yield json_line(dict(row.metadata))


def tombstone(said: Draft | Observation, *, session: str | None) -> str:
    """Return the digest that is kept when a row or draft is forgotten. For tool events, and for text that is not
    distinctive, it applies only to the session (see `tombstone_of`).
    """
    return tombstone_of(said.text, session=session, is_tool=said.type in TOOL_EVENTS)


def tombstone_of(text: str, *, session: str | None = None, is_tool: bool = False) -> str:
    """Return the digest of forgotten text: 32 hex digits, made from its words (see `said_words`). Text of tools and
    text that is not distinctive may recur by chance, so their digests also depend on the session.
    """
    words = said_words(text)
    return digest("said", _joined(words)) if not is_tool and is_distinctive(words) else _of_session(words, session)


def row_tombstones(said: Draft | Observation, *, session: str | None) -> tuple[str, ...]:
    """Return the digests by which a row or draft is recognised as forgotten, with or without its speaker."""
    if said.type in TOOL_EVENTS:
        return _of_session(said_words(said.text), session), _text_digest(said.text, session)
    return tombstones(said.text, session=session) + message_tombstones(words_of(said.text))


def tombstones(text: str, *, session: str | None = None) -> tuple[str, ...]:
    """Return the digests by which text, such as a title, is recognised as forgotten."""
    words = said_words(text)
    return _of_session(words, session), _text_digest(text, session), _text_digest(text, None), *message_tombstones(text)


def message_tombstones(text: str) -> tuple[str, ...]:
    """Return the digests by which a message is recognised as forgotten, with or without headings above it. The first
    one is kept when the message is forgotten.
    """
    folded = _folded(_EMPHASIS.sub("", text)).strip(_AROUND)
    said = (said_words(part) for part in dict.fromkeys((text, _HEADINGS.sub("", text))))
    return *(digest("said", _joined(words)) for words in said), digest("message", None, folded)


def _joined(words: str) -> str:
    return _SPACE.sub("", words)


def _of_session(words: str, session: str | None) -> str:
    return digest("said", session, _joined(words))


def _text_digest(text: str, session: str | None) -> str:
    """Return the digest that former versions kept of text. Only case and spacing are ignored."""
    return digest(session, _folded(text))


def _folded(text: str) -> str:
    return folded_text(_HALF.sub("\ufffd", text))
