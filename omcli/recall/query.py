"""Queries: the words that a person or an agent asks for, and parts of texts for comparing meanings."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from omcli.base import lazily
from omcli.base.record import record
from omcli.text.terms import FUNCTION_WORDS, NAME_LIKE, split_cjk

MOST_MATCHES = 10_000
"""Number of matches of a word that are looked at, the newest ones."""
_WORD = lazily(r"[^\W_]+")
_ENDING = lazily(r"(?<=[^\W_])['’](?:s|t|d|m|ll|re|ve)\b")
"""Matches what an apostrophe adds to an English word, which says nothing of its own."""
_EXACT = lazily(r'["“]([^"“”]+)["”]|([^\W_]+(?:[-_./:#@]+[^\W_]+)+)')
"""Matches a quotation, or a name that consists of several words: a path, an identifier, a version."""
_WHY = frozenset({"why", "warum", "wieso", "weshalb", "pourquoi", "perché", "waarom", "varför"})
_SHORTEST_QUESTION = 3
_MOST_WORDS = 64
"""Maximum number of words of a query. A longer text is searched by its first ones."""
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
    """Quotations and names, in lower case. What contains them as they are written ranks before other matches."""

    asks_why: bool = False
    """True if the text asks for a reason, which a decision gives."""

    @property
    def is_question(self) -> bool:
        """True if neighbours of what has the words may answer it. One or two words, or a name, ask for themselves."""
        return len(self.words) >= _SHORTEST_QUESTION and not self.exact

    def missing(self, text: str) -> int:
        """Return how many of the names and quotations a text lacks."""
        folded = " ".join(text.lower().split()) if self.exact else ""
        return sum(name not in folded for name in self.exact)

    @classmethod
    def of(cls, text: str) -> Query:
        """Return the query for a text. It has no words if the text has neither letters nor digits.

        If a text has only function words, they are the words.
        """
        folded = unicodedata.normalize("NFC", text).lower()
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
