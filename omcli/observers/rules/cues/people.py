"""What a person says to an agent: rules, preferences, decisions, corrections, requests, questions and facts.

These cues are English; a few of other languages stand in `languages`. What no cue tells apart is kept all the same, as
a request or as what the agent said.
"""

from __future__ import annotations

from functools import lru_cache

from omcli.memory.observation import Type
from omcli.memory.patterns import lazily
from omcli.observers.rules import languages
from omcli.observers.rules.cues import questions
from omcli.observers.rules.cues.matching import REMEMBERED, small, words
from omcli.observers.rules.cues.standing import is_asked_politely, is_standing
from omcli.observers.rules.cues.statements import (
    begins_as_statement,
    is_about_self,
    names_a_thing,
    orders,
    tells_a_change,
    tells_what_happened,
    wishes,
)

_CONSTRAINT = lazily(
    r"^(?:and |but |also |please |so )*(?:do not|don'?t|never|avoid|no need to|make sure|ensure|be sure|only|must|"
    r"you must(?: not)?|you should(?: not|n'?t)?|it (?:must|should|needs to))\b|"
    r"\bmust (?:not |never )?(?:be|have|use|stay)\b|"
    r"[,;] (?:so |and |but )?no need (?:to|for)\b",
)
_PREFERENCE = lazily(
    r"\b(?:i(?: really| usually| generally| also| still| personally| much| definitely| do|'d| would)*"
    r" (?:prefer|love|enjoy|hate|dislike|favou?r)(?! to (?:hear|know|see|get)\b)|"
    r"i(?: really| usually| generally| also| still)* (?:like|don'?t (?:really )?like|can'?t stand)|"
    r"i(?:'d| would)(?: much)? (?:rather|like it (?:if|better)|like (?:you|us|everything|all|my|our)\b)|"
    r"i'?m (?:not a|a (?:big|huge)) fan of|i (?:tend|lean) (?:to|toward)|works? (?:best|better) for me)\b|"
    r"\bmy (?:preferred|preference|favou?rite)|"
    r"^prefers?\b",
)
_CORRECTION = words(
    "no(?! (?:problem|worries|need|idea|longer|doubt|one|matter|more))", "nope", "wrong", "wait", "stop", "hmm,? no",
    "undo", "revert", "actually", "that(?:'s| is| was) (?:not|wrong|incorrect)", "this (?:is|was) (?:not|wrong)",
    "it(?:'s| is) (?:not|wrong|still)",
    "you (?:forgot|missed|broke|didn'?t|did not|should ?n'?t|should not|should have|removed|misunderst)",
    "why (?:exactly )?(?:did|are|is|do|don'?t|didn'?t) you", "i (?:said|meant|did ?n'?t (?:ask|mean|want))",
    "not what i", "please (?:undo|revert)", at_start=True,
)  # fmt: skip
_WRONG = lazily(
    r"\b(?:is|are|was|were)(?: not|n'?t) (?:correct|right|true|accurate|what i)\b|"
    r"^[^,;:]{1,60} (?:is|are) (?:wrong|incorrect)\b",
)
_DECISION = lazily(
    r"\b(?:let'?s (?:use|go (?:with|for)|keep(?! (?:going|at it|on)\b)|drop|do|not|make(?! sure)|stick|store|put|call|"
    r"remove|just)|"
    r"we(?:'ll| will|'re going to) (?:use|go|keep|drop|need|do|make|not|switch|stick)|(?:will |'ll )?go with|"
    r"going with|went with|decided|use \S+ instead|agreed|sounds good|option \w\b|"
    r"i(?:'ll| will) (?:go (?:with|for)|take (?:the|option)|use|stick|keep (?:the|it|using|this|that|my|our))|"
    r"(?:i|we)(?:'ve|'re|'m| have| are| am)? switch(?:ed|ing) to|we(?:'re| are) (?:using|dropping|keeping)|"
    r"(?:i|we)(?:'ve| have)? (?:chosen|chose|opted|settled|picked|ruled out|rejected|agreed|committed))\b",
)
# Weighed, not decided: "I'm thinking of using X", "maybe a cache".
_TENTATIVE = lazily(
    r"^(?:so |and |but |or )*(?:maybe|perhaps|possibly|what if|i wonder)\b|"
    r"\b(?:(?:i'?m|we'?re|i am|we are|i was|been) (?:\w+ )?(?:thinking (?:of|about)|considering|debating|leaning|"
    r"torn)|(?:i|we) (?:might|may)|not (?:yet )?decided|(?:haven'?t|never) decided|should (?:i|we)|"
    r"(?:not (?:so )?sure|unsure|do(?:n'?t| not) (?:know|remember|recall)|doubt)(?: if| whether| that)? (?:i|we|they)"
    r" (?:ever |really )?(?:decided|agreed|settled|chose|picked))\b",
)
LASTING = frozenset({Type.PREFERENCE, Type.DECISION, Type.INSTRUCTION})
_IMPORTANCE = {
    Type.PREFERENCE: 8, Type.DECISION: 8, Type.CORRECTION: 8, Type.REQUEST: 7, Type.QUESTION: 5, Type.FACT: 5,
    Type.PLAN: 4,
}  # fmt: skip


@lru_cache(maxsize=REMEMBERED)
def user_type(sentence: str) -> Type | None:
    """What a sentence of a person is, or None where nothing tells: then it is part of a request."""
    said = small(sentence)
    is_question = questions.is_question(said)
    asks = (is_question and not questions.asks_for_work(said)) or questions.asks_for_words(said)
    if (not is_question or is_asked_politely(said)) and is_standing(said):
        return Type.INSTRUCTION
    if not asks and (_PREFERENCE.search(said) or languages.PREFERENCE.search(said)):
        return Type.PREFERENCE
    if _CORRECTION.match(said) or _WRONG.search(said) or languages.CORRECTION.match(said):
        return Type.CORRECTION
    if asks:
        return Type.REQUEST if is_question and languages.REQUEST.search(said) else Type.QUESTION
    if _CONSTRAINT.search(said):
        return Type.INSTRUCTION
    if _TENTATIVE.search(said):
        return Type.PLAN
    if _DECISION.search(said) or languages.DECISION.search(said):
        return Type.DECISION
    if is_question or questions.asks_for_work(said) or languages.REQUEST.search(said):
        return Type.REQUEST
    is_fact = is_about_self(sentence) or tells_a_change(said) or tells_what_happened(said)
    return Type.FACT if is_fact and not orders(said) else None


def user_importance(sentence: str, kind: Type | None) -> int:
    """0 to 10: what rules later work, who somebody is and what has changed count more than what is asked."""
    said = small(sentence)
    if kind is Type.INSTRUCTION:
        return 9 if is_standing(said) else 8
    if kind is Type.FACT and (is_about_self(sentence) or (tells_a_change(said) and not wishes(said))):
        return 7
    if kind is None and not begins_as_statement(said):
        return _IMPORTANCE[Type.REQUEST]  # "Put it in the handler": what it is told, an agent does
    if kind in (Type.FACT, None) and names_a_thing(said):
        return 6
    return _IMPORTANCE.get(kind, 5) if kind else 5


def lasts(sentence: str, kind: Type | None) -> bool:
    """Whether what a person says holds beyond the request it stands in: a rule, a preference, a decision."""
    return kind in LASTING and (kind is not Type.INSTRUCTION or is_standing(sentence))
