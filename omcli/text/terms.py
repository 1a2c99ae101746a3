"""Terms of text: the identifiers, paths, numbers and words that show its subject."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import chain

from omcli.base import lazily

FUNCTION_WORDS = frozenset(
    """
a an the and or but if of to in on at by for with from as is are was were be been being am do does did have has had
i you he she it we they me him her us them my your his its our their this that these those not no so than then too
very can could will would should shall may might must just also there here what which who whom when where why how
all any both each few more most other some such only own same
""".split()
)
"""Articles, pronouns, prepositions and other words that carry no meaning of their own."""

COMMON_WORDS = frozenset(
    """
able about above absolutely accept across act actually add admire advice afraid after again against age ago agree
ahead alive almost alone along already alright although always amazing among amount angry another answer anyone
anything anyway apart appreciate area around arrive ask asked asking attention away awesome awful back bad balance
barely basically beat beautiful became because become before began begin behind believe belong below besides best
better between big bit blast blessed body boring bother bottom break brilliant bring brings brought build busy buy
call called calm came cannot care careful carry case catch caught cause certain certainly challenge challenging
chance change changed chat check cheer chill choice choose clear clearly close cold come comes comfort comfortable
coming common complete completely congrats congratulations connect connected connection consider continue control
cool correct cost couple course crazy create created creative curious current currently cut cute daily dang day days
deal dear decide deep deeply definitely delighted depend deserve difference different difficult direction doing done
door doubt down dream dreams drive due during early easily easy effort either else encourage encouraging end energy
enjoy enjoyed enjoying enough entire especially even evening ever every everyone everything exactly example
excellent except excited excitement exciting expect experience experiences explain express extra extremely eye eyes
face fact fair fall family fantastic far fast favorite feel feeling feelings feels felt fill final finally find
finding fine finish finished first fit fix focus follow following forget form forward found free fresh friend
friends front fulfilling full fun funny further future gain gave general gently get gets getting gift give given
gives giving glad go goal goals goes going gone good gorgeous got grateful great grew grow growing growth guess
guide guy guys half hand handle hands hang happen happened happening happens happiness happy hard hate having head
healthy hear heard hearing heart held hell hello help helped helpful helping helps hey hi high hit hold home
honestly hope hopeful hopefully hoping hour hours house however huge human hurt idea ideas imagine important
impressive incredible indeed inside inspiration inspire inspired inspires inspiring instead interested interesting
into issue job join journey joy keep keeping keeps kept kick kid kind kinda knew know knowing known knows lack large
last late lately later laugh lead learn learned learning least leave left less lesson let level life light like
liked likely line list listen little live lives living long look looked looking looks lose lost lot lots love loved
lovely loves loving low luck lucky made main maintain make makes making man many mark matter matters maybe mean
meaning meaningful means meant meet memories memory mention mentioned message middle mind mine minute minutes miss
missed mix moment moments month months morning mostly move much myself name natural nature near nearly need needed
needs never new news next nice night none nope nor normal note nothing notice now number obviously occasion off
offer often oh ok okay old once one ones open opportunity option order others out outside over overall pain part
particular particularly pass passed passion passionate past path pay peace peaceful people perfect perhaps person
personal phew pick picture piece place plan planning plans play please plenty plus point positive possible power
practice precious prepare present pretty probably problem process progress promise proud provide purpose push put
putting question quick quickly quiet quite ran rather reach react read ready real reality realize really reason
recently refresh regular relate relax relaxed relaxing relief remain remember remind reminded reminder reminds rest
result return rewarding right role room rough routine run running sad safe said save saw say saying says scary scene
season second see seeing seem seems seen self send sense sent serious seriously set several share shared sharing
short show showed showing shows shy sick side sight similar simple simply since sit situation skill slow small smile
somebody somehow someone something sometimes somewhere soon sorry sort sound sounds space special spend spent spirit
spot stand start started starting stay step stick still stop stopped story strength stress strong struggle stuff
stunning suddenly suggest super support supporting supportive supposed sure surely surprise surprised sweet table
take taken takes taking talk talked talking teach tell telling tend term terrific thank thanks themselves thing
things think thinking third though thought thoughts thousand thrilled through throughout time times tiny tip tips
tired today together told tomorrow tonight took top total totally touch tough toward track treasure tried trip true
truly trust truth try trying turn turned type uh understand understanding unique until up upon use used useful using
usual usually valuable value variety various vibe vibes view wait wake walk want wanted wanting wants warm watch way
ways wear week weekend weeks weird welcome well went whatever whenever whether while whole whose wild willing win
wish within without woman won wonder wonderful wondering word words work worked working works world worried worry
worse worth wow write wrong yeah year years yep yes yesterday yet young yourself yup
""".split()
)
"""Words common in text about any subject: feelings, courtesies, plain verbs and adjectives. They say little about it.
"""

_TERM = r"\w+(?:[-./:#@]+\w+)*"
_TERMS = lazily(_TERM)
_CAPITAL_INSIDE = lazily(rf" (?<=[^.!?:;·\"'(\[—-] )(?=[^\W\d_a-z])({_TERM})")
_WIDE = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
"""A run of Chinese, Japanese or Korean characters. Compiled only if needed, because that takes as long as reading 100
rows.
"""
_FIRST_WIDE = "\u3040"
# Digits, punctuation, two hyphens or inner capitals mark paths, identifiers, versions and amounts.
NAME_LIKE = lazily(r"[\d_./:#@]|[^\W\d_]-\w+-|[a-z][A-Z]")
NEGATION = lazily(r"(?:no|not|never|none|nothing|neither|nor|without|cannot|\w*n['’]t)\Z", re.IGNORECASE)
"""Matches a word that negates."""
_NEGATED = lazily(r"\w+n['’]t\b")
_SUFFIXES = ("ing", "ed", "es", "s", "ly")


def terms_of(texts: Sequence[str]) -> list[frozenset[str]]:
    """Return the terms of each text: identifiers, paths and numbers verbatim, and other words in lower case without
    endings.

    Chinese, Japanese and Korean text yields pairs of characters. Function words and single letters are left out.
    """
    forms = cache(_terms)  # most words occur many times
    return [frozenset(chain.from_iterable(map(forms, _TERMS.findall(text)))) for text in texts]


def term_list(text: str) -> list[str]:
    """Return the terms of a text in order, with each negation as "not"."""
    words = _TERMS.findall(_NEGATED.sub("not", text))
    return [term for word in words for term in (("not",) if NEGATION.match(word) else _terms(word))]


def capital_terms(texts: Sequence[str]) -> frozenset[str]:
    """Return the terms of words capitalised in mid-sentence in at least one text. Such words are likely names."""
    tokens = set(_CAPITAL_INSIDE.findall("\n.".join(texts)))  # tokens and sentences end with their text
    return frozenset().union(*(_terms(token) for token in tokens if token[0].isupper()))


def _terms(token: str) -> tuple[str, ...]:
    if token[0] >= _FIRST_WIDE and (wide := re.match(_WIDE, token)):
        run, rest = wide[0], token[wide.end() :]
        pairs = [run[at : at + 2] for at in range(max(1, len(run) - 1))]
        return (*pairs, *chain.from_iterable(map(_terms, _TERMS.findall(rest))))
    if NAME_LIKE.search(token):
        return (token,)
    word = token.lower()
    return (folded(word),) if word not in FUNCTION_WORDS and len(word) > 1 else ()


def split_cjk(text: str) -> str:
    """Return text with each run of Chinese, Japanese or Korean characters as overlapping pairs and the last character:
    "東京都" becomes "東京 京都 都".

    So a word of two characters is found anywhere, and a single one as the beginning of a pair.
    """
    return re.sub(_WIDE, lambda run: f" {' '.join(run[0][at : at + 2] for at in range(len(run[0])))} ", text)


def folded(word: str) -> str:
    """Return a word without the most common English endings, if at least three letters remain: "tests" and "testing"
    become "test".
    """
    if word.endswith(_SUFFIXES):
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) >= len(suffix) + 3:
                return word[: -len(suffix)]
    return word


@cache
def folded_words() -> frozenset[str]:
    """Return COMMON_WORDS as terms."""
    return frozenset(map(folded, COMMON_WORDS))
