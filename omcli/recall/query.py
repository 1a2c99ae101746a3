"""Queries: the words that a person or an agent asks for, and parts of texts for comparing meanings."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from omcli.base import lazily
from omcli.base.record import record
from omcli.text.terms import FUNCTION_WORDS, NAME_LIKE, split_cjk

MOST_MATCHES = 10_000
"""Maximum number of matches to read for each word, the newest ones."""
_WORD = lazily(r"[^\W_]+")
_ENDING = lazily(r"(?<=[^\W_])['’](?:s|t|d|m|ll|re|ve)\b")
"""Matches what an apostrophe adds to an English word, which says nothing of its own."""
_EXACT = lazily(r'["“]([^"“”]+)["”]|([^\W_]+(?:[-_./:#@]+[^\W_]+)+)')
"""Matches a quotation, or a name that consists of several words: a path, an identifier, a version."""
_WHY = frozenset({"why", "warum", "wieso", "weshalb", "pourquoi", "perché", "waarom", "varför"})
_SHORTEST_QUESTION = 3
_MOST_WORDS = 64
"""Maximum number of words in a query. Of a longer text, the first ones are used."""
_LONGEST_PIECE = 1_000
"""Maximum number of characters of a part: about 250 tokens, as many as small models take, and one subject."""
_MOST_PIECES = 2
"""Maximum number of parts of a text that have a vector: more found nothing more. All of it is found by its words."""
_ENDS = ("\n\n", "\n", ". ", "? ", "! ", " ")
"""Ends of paragraphs, lines, sentences and words. A text is cut at the first kind that its part has."""
_SPACE = " \t\n\r"


@record
class Query:
    words: tuple[str, ...]
    """The words to search for, in order, each once and without function words. They are in lower case."""
    exact: tuple[str, ...] = ()
    """Quotations and names, in lower case. Text that contains them exactly as written ranks before other matches."""

    asks_why: bool = False
    """True if the text asks for a reason. Decisions then count more."""

    @property
    def is_question(self) -> bool:
        """True if messages next to a match may be the answer. One or two words, or a name, only look for themselves."""
        return len(self.words) >= _SHORTEST_QUESTION and not self.exact

    def missing(self, text: str) -> int:
        """Return the number of names and quotations (`exact`) that a text doesn't contain."""
        folded = " ".join(_folded(text).split()) if self.exact else ""
        return sum(name not in folded for name in self.exact)

    def is_in(self, text: str) -> bool:
        """Return True if a text contains each word and, as they are written, the names and quotations."""
        folded = _folded(text)
        return all(word in folded for word in self.words) and not self.missing(text)

    @classmethod
    def of(cls, text: str) -> Query:
        """Return the query for a text. It has no words if the text has neither letters nor digits.

        If the text consists of function words, they are the words.
        """
        folded = _folded(text)
        found = list(dict.fromkeys(_WORD.findall(split_cjk(_ENDING.sub(" ", folded)))))
        words = [word for word in found if word not in FUNCTION_WORDS] or found
        exact = (
            " ".join((quotation or name).split())
            for quotation, name in _EXACT.findall(folded)
            if quotation or NAME_LIKE.search(name)
        )
        return cls(
            words=tuple(words[:_MOST_WORDS]),
            exact=tuple(dict.fromkeys(exact)),
            asks_why=not _WHY.isdisjoint(found),
        )


def pieces(text: str) -> Iterator[str]:
    """Yield the first parts of a text, each cut at the end of a paragraph, line, sentence or word in its second half.

    Nothing is yielded for a text of spaces.
    """
    text = text.strip(_SPACE)
    ends = 0
    for _ in range(_MOST_PIECES):
        begins, ends = ends, ends + _LONGEST_PIECE
        if ends < len(text):
            half = begins + _LONGEST_PIECE // 2
            found = (at + len(end) for end in _ENDS if (at := text.rfind(end, half, ends)) >= 0)
            ends = min(next(found, ends), ends)
        if piece := text[begins:ends].strip(_SPACE):
            yield piece


def _folded(text: str) -> str:
    """Return text in lower case, with each accent as part of its letter: there are two ways to encode an "é"."""
    return unicodedata.normalize("NFC", text).lower()
