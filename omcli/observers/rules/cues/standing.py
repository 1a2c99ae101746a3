"""Rules for what follows: sentences that hold beyond the request they stand in, told from those that only ask or tell.

"Never push to main" is one; "It never ends", "Fix it so that it never ends" and "Write a hook that runs every time you
save" have the same words, and are none.
"""

from __future__ import annotations

import re
from itertools import islice

from omcli.memory.patterns import lazily
from omcli.observers.rules import languages
from omcli.observers.rules.cues.matching import LEADS_IN, small, words
from omcli.observers.rules.cues.statements import orders

_RULE = r"(?:include|use|provide|give|format|mention|explain|list|avoid|add|show|keep|make sure|ensure|be sure)"
_OCCASION = (
    r"(?:i (?:ask|mention|request|talk|say)|you (?:answer|respond|reply|write|give|provide|explain|suggest|discuss))"
)
_EVERY_TIME = r"(?:whenever|(?:every|each|any) ?time)"
_SAID_OR_WRITTEN = (
    r"(?:answers?|repl(?:y|ies)|responses?|messages?|reports?|summar(?:y|ies)|explanations?|commits?|"
    r"commit messages?|pull requests?|prs?)"
)
_MADE_AT_WORK = (
    rf"(?:{_SAID_OR_WRITTEN}|files?|functions?|methods?|class(?:es)?|modules?|tests?|scripts?|migrations?|changes?|"
    r"fix(?:es)?|docstrings?|comments?|branch(?:es)?|variables?|quer(?:y|ies))"
)
"""What all of is worked on by rules; "each page should have a title" is about one thing that is to be made."""
_TELLS_ON = (
    r"(?:it|its|it's|the|this|that|there|they|these|we|i|i'm|i've|my|our|he|she|nothing|everything|something|a|an|all|"
    r"some|no)"
)
_THEN = rf", (?:please |then |also |always )*(?!{_TELLS_ON}\b)\w"

# Say themselves that they hold.
_SAYS_SO = words(
    "from (?:now|here|this point) on", "don'?t ever", "do not ever", "under no circumstances",
    "(?:until|unless) (?:i|we) (?:say|tell|ask)", f"whenever {_OCCASION}",
    rf"(?:when|if) {_OCCASION}\b[^?]{{0,200}}\b{_RULE}", rf"{_RULE}\b[^?]{{1,200}}\b(?:when|if|each time) {_OCCASION}",
    "without (?:asking|my (?:approval|consent|permission|ok(?:ay)?))",
    "(?:ask|check with|consult|warn) me (?:first )?before",
    "(?:if|when)(?: you(?:'re| are)| something is| anything is)? (?:not sure|unsure|in doubt)",
)  # fmt: skip
_BEGINS_RULE = lazily(
    rf"^{LEADS_IN}(?:by default,|as a rule\b|remember (?:to|that)\b|no \w+(?: \w+)? without\b|"
    rf"in (?:the )?future\b,? ?(?!(?:we|it|they|this|that|the|there|i(?! want| need| would|'d))\b)\w|"
    rf"(?:{_EVERY_TIME}|(?:when|while) \w+ing\b|(?:before|after) (?:each|every|any)\b|before you \w+ an? )[^,]{{1,150}}"
    rf"{_THEN}|for (?:every|each|any) \w+(?: \w+)?(?: that)? you\b|"
    rf"(?:all|every|each|any) (?:new |of the |of your )?{_MADE_AT_WORK}\b[\w' -]{{0,60}}?\b(?:must|should|needs?|"
    r"ha(?:s|ve) to)\b)",
)
_DONE = r"(?:had|has|have to|need to|been|was|were|did|mind|saw|seen|got|knew|thought|heard|really|quite|\w+[^e\W]ed)"
# Where "always" tells somebody what to do; not what always fails, or is to be made so that it never does.
_ALWAYS = lazily(
    r"(?:^|[,;:.(] ?|\b(?:and|but|so|or|then|please|should|must|(?:can|could|would|will) you|"
    r"(?:sure|ensure|remember)(?: that)? (?:you|to)|(?:want|need|like|expect|prefer|try)(?: you)? to) )"
    rf"(?:always|never) (?!{_DONE}\b|\w+[^su\W]s\b)\w",
)
# Hold where they don't belong to something that is told, or made.
_ON_OCCASION = words(
    "(?<!before )(?<!after )(?<!for )(?:going|moving) forward", r"in (?:the )?future(?=\W*$)", "(?<=, )as a rule",
    rf"(?<=\w ){_EVERY_TIME} (?:you|i (?:ask|mention|request))", "(?:before|after) (?:each|every|any)",
    rf"(?:in|for) (?:all|every|each|any|your)(?: of)?(?: your| the)?(?: new| future)? {_SAID_OR_WRITTEN}",
    rf"keep (?:all )?(?:of )?your {_SAID_OR_WRITTEN}",
)  # fmt: skip
_CLAUSE = lazily(r"[;:.] |, (?:so|but|and) ")
_TOLD = lazily(
    rf"^{LEADS_IN}(?:(?:it|this|that|they|these|those|he|she|there|we|i|i'm|everything|nothing|something|"
    r"(?:the|my|our|its|their|an?) [\w-]+)\b|\w+ (?:is|are|was|were|will|might|may)\b)",
)
_WANTED = lazily(r"\b(?:must|should|shall|need|needs|ha(?:s|ve) to|want|like|expect)\b")
_MADE = lazily(r"\b(?:that|which|who|might|may|could|will|would|to \w+)\b")
_NO_SUBJECT = lazily(rf"^{LEADS_IN}(?:it|this|that|there|he|she) (?:should|must) *$")
_ASKED_POLITELY = lazily(
    rf"^{LEADS_IN}(?:can|could|would|will) you (?:please |just )?(?:always|never|from now on|in (?:the )?future)\b",
)
_MOST = 5
"""Places of a sentence that are looked at."""


def is_standing(sentence: str) -> bool:
    """Whether a sentence rules what follows, not only one request."""
    said = small(sentence)
    if _SAYS_SO.search(said) or _BEGINS_RULE.match(said):
        return True
    if languages.STANDING.search(said) and not languages.TELLS.match(said):
        return True
    return any(_orders_always(said, found) for found in islice(_ALWAYS.finditer(said), _MOST)) or any(
        _is_free(_clause(said, found.start())) for found in islice(_ON_OCCASION.finditer(said), _MOST)
    )


def is_asked_politely(sentence: str) -> bool:
    """Whether a rule is worded as a question: "Can you always run the tests?"."""
    return bool(_ASKED_POLITELY.match(small(sentence)))


def _orders_always(said: str, found: re.Match[str]) -> bool:
    """Whether "always" is said to somebody: not where it is wished for of what is to be made, or told of a thing."""
    clause = _clause(said, found.end() - 1)[: -len("always ")]
    if _WANTED.search(clause):
        return not (orders(clause) or _NO_SUBJECT.match(clause))
    return not _TOLD.match(clause)


def _is_free(clause: str) -> bool:
    """Whether what stands before an occasion neither tells nor plans what happens then."""
    if _WANTED.search(clause):
        return not (orders(clause) and _MADE.search(clause))
    return not (_TOLD.match(clause) or _MADE.search(clause))


def _clause(said: str, end: int) -> str:
    """What of a sentence stands before a place, from where its last clause begins."""
    start = 0
    for joint in _CLAUSE.finditer(said, 0, end):
        start = joint.end()
    return said[start:end]
