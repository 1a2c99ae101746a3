"""How cues are matched: as whole words, with straight apostrophes, nearly all of them in small letters.

That is matched three times as fast as without regard to case, and compiled in two thirds of the time.
"""

from __future__ import annotations

import re

from omcli.memory.patterns import lazily

REMEMBERED = 512
"""Sentences of which is remembered what they are: each is looked at a few times while its text is."""
LEADS_IN = (
    r"(?:(?:so+|and|but|or|now|ok(?:ay)?|well|also|alright|right|then|next|first|finally|lastly|please|just|hmm+|yes|"
    r"if so|oh|wait)[,.!]* )*"
)
"""What a sentence may begin with before it says anything: "ok so now"."""


def words(*alternatives: str, at_start: bool = False) -> re.Pattern[str]:
    """Any of the alternatives as whole words; `at_start` of the sentence only."""
    begin = "^" if at_start else r"\b"
    return lazily(rf"{begin}(?:{'|'.join(alternatives)})\b")


def straight(sentence: str) -> str:
    """With straight apostrophes: the cues are written with them."""
    return sentence.replace("\u2019", "'")


def small(sentence: str) -> str:
    """In small letters, with straight apostrophes: so nearly all cues are written."""
    return straight(sentence).lower()
