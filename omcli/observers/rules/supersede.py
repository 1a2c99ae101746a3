"""Statements that overrule earlier ones: "use X instead of Y", "no longer Y", or a new value for the same thing."""

from __future__ import annotations

import re
from itertools import islice, repeat

from omcli.base import lazily
from omcli.base.record import record
from omcli.memory.observation import OVERRULED, Draft, Type

_LONGEST_OLD = 160
"""Longest claim, in characters; a longer row says more than one thing and is not superseded."""
_LONGEST_NEW = 400
_OVERRULING = OVERRULED | {Type.CORRECTION, Type.REQUEST}
_EARLIER = lazily(r" \(earlier: .*\)$")
_AGENT = "Agent"
_PERSON = "User"

# What is given up, up to the next phrase.
_ABANDONS = lazily(
    r"\b(?:instead of|rather than|in place of|"
    r"(?:switch|mov|migrat|chang)(?:e|ed|es|ing|ing over)? (?:[\w\-]+ ){0,3}?from|"
    r"no longer|stop(?:ped)? using|not using|(?:forget|scrap|drop|never ?mind)(?: what i said)?(?: about)?|"
    r"changed my mind (?:about|on)) +(?P<old>[^\s,;.!?][^,;!?\n]{0,80})"
    r"|\b(?:don'?t|do not|doesn'?t|won'?t) (?P<anymore>[^,;.!?\n]{1,60}?) any ?more\b"
    r"|\bnot (?P<not>[^,;.!?\n]{1,40}?),? but\b|, not (?P<last>[^,;.!?\n]{1,40})[.!]*$",
    re.IGNORECASE,
)
_ENDS_PHRASE = lazily(r"\s(?:to|with|for|because|since|and|but|in|on|when|as|so|anymore|any more)\b|\.(?:\s|$)")
_TAKES_BACK = lazily(
    r"\b(?:scrap|forget|never ?mind) (?:that|it|this)\b|\b(?:i|we)(?:'ve| have)? changed (?:my|our) minds?\b",
    re.IGNORECASE,
)
_IN_USE = lazily(
    r"\b(?:use|uses|using|have|has|prefers?|is|are|runs?|lives?|works?|set|called|named|keep|stays?|go(?:ing)? with|"
    r"on|at|in)\b",
    re.IGNORECASE,
)

_WORDS = lazily(r"[^\W_][\w'./+#\-]*")
_STOP_WORDS = frozenset(
    (
        "a about actually agent an and any anymore anything are as at be but by do does for from go going have i in "
        "instead is it its just keep let let's longer make more my need no not now of on or our please prefer put "
        "rather said set so stay than that the then this to us use used user uses using want was we what when will "
        "with work works you your"
    ).split()
)

_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_VALUE = lazily(
    rf"\b{_MONTH}(?: \d{{1,2}}(?:st|nd|rd|th)?)?(?:,? \d{{4}})?\b|\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}(?: \d{{4}})?\b"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
    r"|(?<![\w.])v?\d[\w.:,/%\-]*"
    r"|(?<![.!?:] )(?<!^)\b(?P<name>[A-Z][\w\-]+(?: [A-Z][\w\-]+)*)"
)
_AS_VALUE = lazily(
    r"(?:\b(?:is|are|be|to|at|of|all|only|under|over|about|until|by|on|in|within|have|has|called|named)|[=:]) $",
    re.IGNORECASE,
)
_STATEMENT = lazily(r"(?:the|our|my|i|we|it|its|this|that|his|her|their|all)\b", re.IGNORECASE)
_PAST = lazily(r"\b(?:was|were|went|had|did|bought|got|saw|took|ran|made|\w+ed)\b", re.IGNORECASE)
_ONE_NAME = lazily(
    r"\b(?:i|we) (?:live|work|am based|are based)\b|\b(?:my|our|the) [\w\- ]{1,40} is\b|\b(?:called|named)\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3


@record
class Claim:
    """A statement that a later row may supersede."""

    kind: Type
    speaker: str
    words: frozenset[str]
    """Content words in lower case."""
    frame: tuple[Type, str, str] | None
    """Row type, and the text before and after the only value, such as `the limit is`."""
    value: str
    said: str
    """Text without the speaker and without a note of an earlier value."""


@record
class ClaimUpdate:
    """The part of a new row that supersedes earlier claims."""

    speaker: str
    given_up: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """Words for each thing given up, with the words of its subject: ({"postgres"}, {"queue"})."""
    takes_back: bool
    """True if it withdraws the last statement: "scrap that"."""
    frame: tuple[Type, str, str] | None
    """As in `Claim`; the row supersedes a claim with the same frame and another value."""


def claim_of(row: Draft) -> Claim | None:
    """Return the claim of a row; None for other types, and for long rows, which say more than one thing."""
    speaker, said = _speaker_and_text(row.text)
    if not _is_claim(row, said):
        return None
    around = _split_at_value(said, speaker)
    return Claim(
        kind=row.type,
        speaker=speaker,
        words=_content_words(said),
        frame=around and (row.type, around[0], around[2]),
        value=around[1] if around else "",
        said=said,
    )


def update_of(row: Draft) -> ClaimUpdate | None:
    """Return the part of a new row that may supersede claims; None if there is none."""
    if row.type not in _OVERRULING or len(row.text) > _LONGEST_NEW:
        return None
    speaker, said = _speaker_and_text(row.text)
    # Agents say "instead" and "not … but" in explanations; only their decisions supersede anything.
    given_up = _abandoned(said) if speaker != _AGENT or row.type is Type.DECISION else ()
    takes_back = not given_up and bool(_TAKES_BACK.search(said))
    around = _split_at_value(said, speaker) if _is_claim(row, said) else None
    if not (given_up or takes_back or around):
        return None
    framed = around and (row.type, around[0], around[2])
    return ClaimUpdate(speaker=speaker, given_up=given_up, takes_back=takes_back, frame=framed)


def may_replace(change: ClaimUpdate, claim: Claim) -> bool:
    """Return True if the speaker may overrule the claim: the user may overrule the agent, others only themselves."""
    return claim.speaker == change.speaker or (claim.speaker == _AGENT and change.speaker == _PERSON)


def is_dropped(claim: Claim, named: frozenset[str], about: frozenset[str]) -> bool:
    """Return True if a claim is about the thing given up, in the same matter, and does not give it up itself."""
    if not named <= claim.words or (about and not about & claim.words):
        return False
    if claim.speaker == _AGENT and claim.kind is not Type.DECISION:
        return False
    if claim.kind in (Type.FACT, Type.REQUEST) and not _IN_USE.search(claim.said):
        return False
    return not any(named <= before for before, _ in _abandoned(claim.said))


def has_new_value(claim: Claim, change: ClaimUpdate) -> bool:
    """Return True if two rows differ only in a value: `The limit is 10`, `The limit is 20`.

    Values are numbers, dates and weekdays; names only if there can be one ("I work at …"). Repeated actions are
    two facts.
    """
    return change.frame is not None and claim.frame == change.frame and claim.speaker == change.speaker


def with_earlier(text: str, claim: Claim, *, anew: bool) -> str:
    """Append the superseded claim to a text that does not contain it, so that nothing is lost.

    With `anew`, only the value differs, so only the earlier value is appended.
    """
    earlier = claim.value if anew else claim.said
    return text if _content_words(earlier) <= _content_words(text) else f"{text} (earlier: {earlier})"


def _is_claim(row: Draft, said: str) -> bool:
    """Return True if a row is a short statement, including one classified as a request."""
    is_statement = row.type in OVERRULED or (row.type is Type.REQUEST and bool(_STATEMENT.match(said)))
    return is_statement and len(said) <= _LONGEST_OLD


def _abandoned(said: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    found = []
    for match in _ABANDONS.finditer(said):
        phrase = next(group for group in match.groups() if group)
        end = _ENDS_PHRASE.search(phrase)
        named = _content_words(phrase[: end.start()] if end else phrase)
        # "from A to B": the rest is the new value, not the subject.
        about = "" if end is None or end[0].strip() == "to" else phrase[end.end() :]
        if named:
            found.append((named, _content_words(about)))
    return tuple(found)


def _split_at_value(said: str, speaker: str) -> tuple[str, str, str] | None:
    """Split a statement into the text before its only value, the value, and the rest.

    Return None unless it has exactly one value that no second value could join, and is not about the past.
    """
    values = list(islice(_VALUE.finditer(said), 2))
    if len(values) != 1:
        return None
    before, value, after = said[: values[0].start()], values[0][0], said[values[0].end() :]
    if not _AS_VALUE.search(before) or _PAST.search(said) or len(_WORDS.findall(before + after)) < _FEWEST_WORDS:
        return None
    if values[0]["name"] and (speaker != _PERSON or not _ONE_NAME.search(said)):
        return None
    return before.lower(), value, after.lower().rstrip(" .!")


def _speaker_and_text(text: str) -> tuple[str, str]:
    """Split a row into its speaker and its text without an earlier value."""
    speaker, _, said = text.partition(": ")
    return speaker, _EARLIER.sub("", said.replace("\u2019", "'"))


def _content_words(text: str) -> frozenset[str]:
    """Return the words of a text except stop words, in lower case."""
    words = map(str.rstrip, _WORDS.findall(text), repeat(".'/-"))
    return frozenset(map(str.lower, words)) - _STOP_WORDS
