"""Cues of what an agent says: findings, decisions, results, blockers, questions and plans; narration and offers.

Sentences are matched in lower case: three times as fast as ignoring case.
"""

from __future__ import annotations

from functools import lru_cache

from omcli.base.patterns import lazily
from omcli.memory.observation import Type
from omcli.observers.rules.cues import CACHE_SIZE, has_question_mark, is_courtesy, plain

_FINDING = lazily(
    r"\b(?:root cause|the (?:real |actual |main |underlying )?(?:issue|problem|bug|cause|culprit|reason|difference|"
    r"catch) (?:is|was|here)|turns out|caused by|due to|i (?:found|discovered|noticed|confirmed)|"
    r"found (?:it|that|the (?:issue|bug|problem|cause))|this (?:means|explains|is because)|that'?s (?:why|because)|"
    r"never (?:called|set|used)|doesn'?t (?:exist|handle|support|actually)|already (?:exists?|has|handled)|"
    r"conflicts? with)\b",
)
_AGENT_DECISION = lazily(
    r"\b(?:decided (?:to|on|against)|we(?:'ll| will) (?:use|go with|keep|drop)|going with|"
    r"i(?:'ll| will) (?:go with|use|keep|stick)|chose|chosen|opted|settled on|recommend(?:ation|ed)?|trade-?off|"
    r"out of scope|(?:we|i) (?:deferred|rejected)|won'?t (?:be|do|add|support)|my (?:take|pick|choice)|"
    r"i'?d (?:go with|recommend|suggest))\b",
)
_DONE = (
    r"(?:done|fixed|implemented|added|created|updated|removed|deleted|refactored|renamed|migrated|committed|pushed|"
    r"merged|"
    r"released|deployed|published|rewrote|replaced|extracted|moved|completed?|resolved|verified|wrote|written|"
    r"successful(?:ly)?|works|now (?:works|supports|uses|shows|returns|handles|reads|has|is))"
)
_RESULT = lazily(rf"\b{_DONE}\b")
_RESULT_WITHIN = 50
"""Characters from the start of a sentence within which it must report a result."""
_NOT_DONE = lazily(
    r"\b(?:you|if|when|once|until|unless|because|should|could|would|will|must|not|never|who|\w+n't|to be)\b",
)
_I_DID = lazily(
    rf"\b(?:i|we)(?:'ve| have)? (?:\w+ )?{_DONE}\b|"
    r"\b(?:tests?|checks?|lint|build|ci)\b.{0,30}\b(?:pass(?:es|ed|ing)?|green|clean|succeed(?:s|ed)?)\b",
)
_BLOCKER = lazily(
    r"\b(?:(?<!was )(?<!just )(?<!be )(?<!been )blocked (?:by|on)|"
    r"i (?:can'?t|cannot|couldn'?t|am unable|was unable)|unable to|not possible|"
    r"(?:still|keeps?) fail(?:s|ing)?|fails? with|permission denied|requires? (?:you|your|access|manual|approval|"
    r"credentials)|needs? (?:your|you to|access|credentials|approval)|waiting (?:for|on)"
    r" (?:you|your|approval|access|review|credentials)|"
    r"(?:i|we)(?:'m|'re| am| are)(?: still)? stuck|not (?:working|available|installed|configured)|"
    r"out of (?:memory|disk|quota)|rate.limit)\b",
)
# A guess is a hypothesis at most.
_GUESS = lazily(
    r"\b(?:maybe|perhaps|possibly|probably|might|may be|could be|seems? (?:to|like|that)|looks like|"
    r"i (?:think|suspect|guess|assume|believe)|likely|not sure|unclear|hypothesis|presumably)\b",
)
_ONGOING = lazily(r"\b(?:underway|still|in progress|so far|keep (?:monitoring|watching)|is running|continuing)\b")
# Progress of something short; not the place where a server runs.
_PROGRESS = lazily(
    r"\b(?:still|is|are|is now|are now) (?:(?:running|building)(?! (?:on|at|in|under|with|from|as)\b)|compiling|"
    r"continuing|progressing|finishing|underway|under way|in progress)\b|"
    r"\bwaiting (?:for|on) [^.;]{1,60} to (?:finish|end|complete|exit)\b|"
    r"\bnear(?:ing)? the end\b",
)
_NEXT = lazily(
    r"^(?:(?:optional |suggested |recommended |possible )?next(?: (?:steps?|options?|up|actions?|suggestions?))?|"
    r"to ?-?do|remaining|follow-?ups?|still (?:to do|open|missing)|not (?:yet )?done|"
    r"what(?:'s| is) (?:left|next|missing)|left to do|open (?:questions?|items?|issues?))\b",
)
_NARRATION = lazily(
    r"^(?:now,? |then |next,? |first,? |ok(?:ay)?,? |good[,.] |great[,.!] |perfect[,.!] |alright,? |so )*"
    r"(?:let me|let'?s|i(?:'ll| will|'m (?:now |also |just |still )?\w+ing| need to| want to| should|'m now|'m also|"
    r"'m just)|now (?:i|let|add|update|run|fix|create)|checking|looking|running|reading|searching|updating|adding|"
    r"creating|starting|using the)\b",
)
_PLAIN_REQUEST = lazily(r"^please (?:confirm|provide|share|specify|tell|choose|pick|clarify)\b")
_OFFER = lazily(
    r"^(?:(?:sure|of course|absolutely|certainly)[,!] )?(?:i(?:'d be happy to| can| will|'ll)"
    r"(?: certainly| gladly| also)? (?:help|assist)|would you like|do you want|want (?:me )?to|shall i|should i|"
    r"let me know|feel free|if you(?:'d like| want| need| have)|is there anything|anything else|happy to|i can also|"
    r"ready (?:to|for|when)|how (?:can|may) i (?:help|assist))\b",
)


@lru_cache(maxsize=CACHE_SIZE)
def agent_type(sentence: str) -> Type | None:
    """Return the type of an agent's sentence; None for narration and offers."""
    sentence = plain(sentence)
    if _OFFER.match(sentence) or _NARRATION.match(sentence):
        return None
    if has_question_mark(sentence) or _PLAIN_REQUEST.match(sentence):
        return Type.QUESTION
    if _BLOCKER.search(sentence):
        return Type.BLOCKER
    if _FINDING.search(sentence):
        return Type.FACT
    if _AGENT_DECISION.search(sentence) and not _ONGOING.search(sentence):
        return Type.DECISION
    if _is_report(sentence) and not _ONGOING.search(sentence):
        return Type.OUTCOME
    if _NEXT.match(sentence):
        return Type.PLAN
    return None


def _is_report(sentence: str) -> bool:
    """Return True if a sentence starts with a result or says "I" achieved it.

    Results of others, conditions and table rows do not count.
    """
    if " | " in sentence:
        return False
    done = _RESULT.search(sentence, 0, _RESULT_WITHIN)
    return bool(_I_DID.search(sentence)) or (done is not None and not _NOT_DONE.search(sentence, 0, done.start()))


@lru_cache(maxsize=CACHE_SIZE)
def is_filler(sentence: str) -> bool:
    """Return True if a sentence only announces, offers or is polite."""
    return is_narration(sentence) or is_offer(sentence) or is_courtesy(sentence)


def is_narration(sentence: str) -> bool:
    """Return True if a sentence announces the next action: "Let me look at the parser"."""
    return bool(_NARRATION.match(plain(sentence)))


def is_progress(sentence: str) -> bool:
    """Return True if a sentence only reports progress: "The build is still running"."""
    return bool(_PROGRESS.search(plain(sentence))) and agent_type(sentence) not in (Type.FACT, Type.DECISION)


def is_guess(sentence: str) -> bool:
    """Return True if a sentence says that it is unsure."""
    return bool(_GUESS.search(sentence.lower()))


def is_offer(sentence: str) -> bool:
    """Return True if a sentence only offers more work."""
    return bool(_OFFER.match(plain(sentence)))


def opens_next_steps(sentence: str) -> bool:
    """Return True if a heading introduces what is left to do."""
    return bool(_NEXT.match(sentence.lower()))
