"""Cues in what people say to an agent or to each other: rules, preferences, decisions, corrections and facts.

A rule applies to everything that follows, such as "Never push to main". Sentences such as "It never ends" and "Fix it
so that it never ends" are not rules.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

from omcli.base import lazily
from omcli.memory.observation import Type
from omcli.observers.rules import cues, languages
from omcli.observers.rules.cues import (
    CACHE_SIZE,
    IMPERATIVE,
    LEAD_IN,
    MARKS,
    has_name_or_number,
    is_about_change,
    is_about_event,
    is_about_speaker,
    is_imperative,
    is_wanted,
    plain,
    plain_quotes,
    starts_statement,
    whole_words,
)

_RULE_VERB = r"(?:include|use|provide|give|format|mention|explain|list|avoid|add|show|keep|make sure|ensure|be sure)"
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
"""Things that lasting rules are about. "Each page should have a title" is about a single task instead."""
_NARRATIVE_WORD = (
    r"(?:it|its|it's|the|this|that|there|they|these|we|i|i'm|i've|my|our|he|she|nothing|everything|something|a|an|all|"
    r"some|no)"
)
_THEN = rf", (?:please |then |also |always )*(?!{_NARRATIVE_WORD}\b)\w"

_EXPLICIT_RULE = whole_words(
    "from (?:now|here|this point) on", "don'?t ever", "do not ever", "under no circumstances",
    "(?:until|unless) (?:i|we) (?:say|tell|ask)", f"whenever {_OCCASION}",
    rf"(?:when|if) {_OCCASION}\b[^?]{{0,200}}\b{_RULE_VERB}",
    rf"{_RULE_VERB}\b[^?]{{1,200}}\b(?:when|if|each time) {_OCCASION}",
    "without (?:asking|my (?:approval|consent|permission|ok(?:ay)?))",
    r"(?:ask|check with|consult|warn|tell) (?!before\b)\w+ (?:first )?before",
    "(?:if|when)(?: you(?:'re| are)| something is| anything is)? (?:not sure|unsure|in doubt)",
)  # fmt: skip
_RULE_START = lazily(
    rf"^{LEAD_IN}(?:by default,|as a rule\b|"
    r"to (?:run|build|test|start|deploy|lint|format|install|release)\b[^,:]{0,60}[,:]? (?:use|run|call|type) "
    r"(?!(?:the|an?|this|that|these|it|my|our|all)\b)\S|"
    rf"(?:\w+ )?(?:rule|convention|policy)(?: \d+)?: ?\w|remember (?:to|that)\b|no \w+(?: \w+)? without\b|"
    rf"in (?:the )?future\b,? ?(?!(?:we|it|they|this|that|the|there|i(?! want| need| would|'d))\b)\w|"
    rf"(?:{_EVERY_TIME}|(?:when|while) \w+ing\b|(?:before|after) (?:each|every|any)\b|before you \w+ an? )[^,]{{1,150}}"
    rf"{_THEN}|for (?:every|each|any) \w+(?: \w+)?(?: that)? you\b|"
    rf"(?:all|every|each|any) (?:new |of the |of your )?{_MADE_AT_WORK}\b[\w' -]{{0,60}}?\b(?:must|should|needs?|"
    r"ha(?:s|ve) to)\b)",
)
_DONE = r"(?:had|has|have to|need to|been|was|were|did|mind|saw|seen|got|knew|thought|heard|really|quite|\w+[^e\W]ed)"
# "Always" or "never" in an order, unlike "always fails" or "never failed".
_ALWAYS = lazily(
    r"(?:^|[,;:.(] ?|\b(?:and|but|so|or|then|please|should|must|(?:can|could|would|will) you|"
    r"(?:sure|ensure|remember)(?: that)? (?:you|to)|(?:want|need|like|expect|prefer|try)(?: you)? to) )"
    rf"(?:always|never) (?!{_DONE}\b|\w+[^su\W]s\b)\w",
)
# Occasions, which make a rule unless they are part of a report or describe something to make.
_ON_OCCASION = whole_words(
    "(?<!before )(?<!after )(?<!for )(?:going|moving) forward", r"in (?:the )?future(?=\W*$)", "(?<=, )as a rule",
    rf"(?<=\w ){_EVERY_TIME} (?:you|i (?:ask|mention|request))", "(?:before|after) (?:each|every|any)",
    rf"(?:in|for) (?:all|every|each|any|your)(?: of)?(?: your| the)?(?: new| future)? {_SAID_OR_WRITTEN}",
    rf"keep (?:all )?(?:of )?your {_SAID_OR_WRITTEN}",
)  # fmt: skip
_CLAUSE = lazily(r"[;:.] |, (?:so|but|and) ")
_NARRATIVE = lazily(
    rf"^{LEAD_IN}(?:(?:it|this|that|they|these|those|he|she|there|we|i|i'm|everything|nothing|something|"
    r"(?:the|my|our|its|their|an?) [\w-]+)\b|\w+ (?:is|are|was|were|will|might|may)\b)",
)
_WANTED = lazily(r"\b(?:must|should|shall|need|needs|ha(?:s|ve) to|want|like|expect)\b")
_FUTURE_RESULT = lazily(r"\b(?:that|which|who|might|may|could|will|would|to \w+)\b")
_NO_SUBJECT = lazily(rf"^{LEAD_IN}(?:it|this|that|there|he|she) (?:should|must) *$")
_POLITE_RULE = lazily(
    rf"^{LEAD_IN}(?:can|could|would|will) you (?:please |just )?(?:always|never|from now on|in (?:the )?future)\b",
)
_MAX_MATCHES = 5
"""Maximum number of matches examined per pattern and sentence."""


def is_lasting_rule(sentence: str) -> bool:
    """Return True if a sentence is a lasting rule, not a single request."""
    said = plain(sentence)
    if _EXPLICIT_RULE.search(said) or _RULE_START.match(said):
        return True
    if languages.RULE.search(said) and not languages.NARRATIVE.match(said):
        return True
    for found in islice(_ALWAYS.finditer(said), _MAX_MATCHES):
        if _is_order(_clause_before(said, found.end() - 1)[: -len("always ")]):
            return True
    for found in islice(_ON_OCCASION.finditer(said), _MAX_MATCHES):
        if _is_rule_clause(_clause_before(said, found.start())):
            return True
    return False


def is_asked_rule(sentence: str) -> bool:
    """Return True if a rule is worded as a question: "Can you always run the tests?"."""
    return bool(_POLITE_RULE.match(plain(sentence)))


def _is_order(clause: str) -> bool:
    """Return True if the clause before "always" or "never" makes the sentence an order, not a description."""
    if _WANTED.search(clause):
        return not (IMPERATIVE.match(clause) or _NO_SUBJECT.match(clause))
    return not _NARRATIVE.match(clause)


def _is_rule_clause(clause: str) -> bool:
    """Return True if the clause before an occasion ("every time you commit") is neither a report nor about a future
    product.
    """
    if _WANTED.search(clause):
        return not (IMPERATIVE.match(clause) and _FUTURE_RESULT.search(clause))
    return not (_NARRATIVE.match(clause) or _FUTURE_RESULT.search(clause))


def _clause_before(said: str, end: int) -> str:
    start = 0
    for joint in _CLAUSE.finditer(said, 0, end):
        start = joint.end()
    return said[start:end]


_NOT_A_NO = "problem|worries|need|idea|longer|doubt|one|matter|more|way|wonder"
# "No new dependencies", unlike "No guidance exists".
_FORBIDS = lazily(
    rf"^(?:and |but |also |please )*no (?!(?:{_NOT_A_NO})\b)[a-z][^,;:]*$",
)
_STATES = lazily(
    r"\b(?:is|are|was|were|has|have|had|do|does|did|can|could|will|would|exists?|found|given|says?|said|\w+ed|"
    r"works?|fails?|yet|so far)\b",
)
_LABELLED_DECISION = lazily(r"^(?:the |our |my |final )*(?:decisions?|resolution|conclusion|verdict) ?[:–—-]\s*\w")
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
_CORRECTION = whole_words(
    r"no(?:(?=\W*$|\s*[,.!;:–—-])|(?= (?:it|its|it's|that|that's|this|these|those|the|i|i'm|we|you|they|he|she|not|"
    "never|do|don't|just|please|wait|actually|sorry|stop|still|use(?! of| for| in)|add|keep|put|make|remove|delete|go|"
    r"revert|try|leave|instead)\b))", "nope", "wrong", "wait", "stop", "hmm,? no",
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
    r"going with|went with|decided|use [^\s,]+(?: instead|,? not(?! only)|,? rather than)|agreed|"
    r"sounds good|option \w\b|"
    r"i(?:'ll| will) (?:go (?:with|for)|take (?:the|option)|use|stick|keep (?:the|it|using|this|that|my|our))|"
    r"(?:i|we)(?:'ve|'re|'m| have| are| am)? switch(?:ed|ing) to|we(?:'re| are) (?:using|dropping|keeping)|"
    r"(?:i|we)(?:'ve| have)? (?:chosen|chose|opted|settled|picked|ruled out|rejected|agreed|committed))\b",
)
# Considered, not decided: "I'm thinking of using X", "maybe a cache".
_TENTATIVE = lazily(
    r"^(?:so |and |but |or )*(?:maybe|perhaps|possibly|what if|i wonder)\b|"
    r"\b(?:(?:i'?m|we'?re|i am|we are|i was|been) (?:\w+ )?(?:thinking (?:of|about)|considering|debating|leaning|"
    r"torn)|(?:i|we) (?:might|may)|not (?:yet )?decided|(?:haven'?t|never) decided|should (?:i|we)|"
    r"(?:not (?:so )?sure|unsure|do(?:n'?t| not) (?:know|remember|recall)|doubt)(?: if| whether| that)? (?:i|we|they)"
    r" (?:ever |really )?(?:decided|agreed|settled|chose|picked))\b",
)
_NOTE = lazily(r"^(?:(?:please )?note|fyi|nb|info|for the record|heads[- ]up)(?: that|:|,) \w")
_STOP = lazily(
    r"^\W*(?:(?:no|ok|hey|please|just)\W+)*(?:(?:stop|wait|halt|hold on|hang on|cancel|abort)\b\W*)+"
    r"(?:(?:it|that|there|here|now|please|a (?:sec|second|moment|minute))\b\W*)*$",
)
CHAT_TYPES = frozenset({Type.PREFERENCE, Type.DECISION})
"""Types of sentences in chats that are not facts."""
LASTING = frozenset({Type.PREFERENCE, Type.DECISION, Type.INSTRUCTION})
_IMPORTANCE = {
    Type.PREFERENCE: 8, Type.DECISION: 8, Type.CORRECTION: 8, Type.REQUEST: 7, Type.QUESTION: 5, Type.FACT: 5,
    Type.PLAN: 4,
}  # fmt: skip


# A number of things that somebody has or did: "52 sources", "12 card problems".
_COUNT = lazily(r"(?<![\w.,$-])\d[\d,]*(?: [\w-]+){1,3}s\b")
_MAY_STATE = frozenset({None, Type.FACT, Type.REQUEST, Type.QUESTION})
# A value that holds now: "my current pace of 5 km", "the increased budget of 900".
_CURRENT = lazily(
    r"\b(?:my|our|the|his|her|their) (?:\w+ )?(?:current|new|latest|recent|increased|reduced|raised|lowered|updated|"
    r"revised|adjusted|extended)\b[^.?!]{0,60}?\d"
)


@lru_cache(maxsize=CACHE_SIZE)
def user_type(sentence: str) -> Type | None:
    """Return the type of a person's sentence, or None if it has no cue or is a quotation (`> …`)."""
    if sentence.startswith(">"):
        return None
    said = plain(sentence)
    is_question = cues.is_question(said)
    asks = (is_question and not cues.is_work_request(said)) or cues.is_text_request(said)
    if (not is_question or is_asked_rule(said)) and is_lasting_rule(said):
        return Type.INSTRUCTION
    if not asks and (_PREFERENCE.search(said) or languages.PREFERENCE.search(said)):
        return Type.PREFERENCE
    if _CORRECTION.match(said) or _WRONG.search(said) or languages.CORRECTION.match(said):
        return Type.CORRECTION
    if asks:
        return Type.REQUEST if is_question and languages.REQUEST.search(said) else Type.QUESTION
    if (
        _CONSTRAINT.search(said)
        or languages.CONSTRAINT.search(said)
        or (_FORBIDS.match(said) and not _STATES.search(said))
    ):
        return Type.INSTRUCTION
    if _TENTATIVE.search(said) and not is_imperative(said):
        return Type.PLAN
    if _DECISION.search(said) or _LABELLED_DECISION.match(said) or languages.DECISION.search(said):
        return Type.DECISION
    if is_question or cues.is_work_request(said) or languages.REQUEST.search(said):
        return Type.REQUEST
    is_fact = bool(_NOTE.match(said)) or is_about_speaker(sentence) or is_about_change(said) or is_about_event(said)
    return Type.FACT if is_fact and not is_imperative(said) else None


def ends_work(text: str) -> bool:
    """Return True if the whole text only stops the agent."""
    return bool(_STOP.match(plain(text)))


def user_importance(sentence: str, kind: Type | None) -> int:
    """Return an importance from 4, for plans, to 9, for lasting rules and changed values."""
    said = plain(sentence)
    if kind is Type.INSTRUCTION:
        return 9 if is_lasting_rule(said) else 8
    changes = is_about_change(said) and not is_wanted(said)
    if kind is Type.FACT and changes:
        return 9 if any(map(str.isdigit, said)) else 7
    if kind in _MAY_STATE and _CURRENT.search(said):
        return 8
    if kind is Type.FACT and is_about_speaker(sentence):
        return 7
    if kind in (Type.FACT, None) and is_about_event(said) and _COUNT.search(said):
        return 7
    agrees = cues.is_yes(said.partition(" ")[0].strip(MARKS))  # "Sure, let's look at the map"
    if kind is None and not starts_statement(said) and not agrees:
        return _IMPORTANCE[Type.REQUEST]  # "Put it in the handler" is an order
    if kind in (Type.FACT, None) and has_name_or_number(said):
        return 6
    return _IMPORTANCE.get(kind, 5) if kind else 5


_WHEN = whole_words(
    "yesterday", "today", "tomorrow", "tonight",
    r"(?:last|next|this|past|every|each) (?:\w+ )?(?:night|week|weekend|month|year|spring|summer|fall|autumn|winter|"
    r"mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?",
    r"\w+ (?:days?|weeks?|months?|years?) ago", "(?:mon|tues|wednes|thurs|fri|satur|sun)days?",
    "(?:in|since|until|by|on|of) (?:january|february|march|april|may|june|july|august|september|october|november|"
    "december)",
)  # fmt: skip
_DID_SOMETHING = lazily(
    r"\b(?:i|we|my \w+|our \w+)(?:'ve| have| has|'d| had)? (?:\w+ly |just |also |even |never |always |both |all )*"
    r"(?:\w{2,}ed|took|gave|came|saw|told|said|ran|began|kept|brought|wrote|won|lost|drove|flew|ate|drank|sang|swam|"
    r"taught|thought|felt|fell|grew|knew|sold|sent|slept|spoke|wore|broke|chose|caught|fought|forgot|hung|held|hurt|"
    r"led|lent|let|paid|rode|rose|shot|showed|stood|stuck|threw|woke|made|did|got|had|went|met|found|bought|built|"
    r"left|spent|heard|read|set|cut)\b",
)
_NAME_INSIDE = lazily(r"(?<=[a-z,] )(?!I\b|I')[A-Z][a-z]+")
_ABOUT_YOU = lazily(
    r"^(?:(?:i'?m |i am )?(?:so |really |super )*(?:proud of|happy for|glad(?: that)?) you|"
    r"(?:and |but |so |well,? |i (?:think|know|bet|'?m sure) (?:that )?)*(?:you(?:'re| are|'ll be| will be|'ve got|"
    r" have| look| sound| seem| must| deserve| guys| rock| inspire)|your \w+(?: \w+)?"
    r"(?:'s| is| are| means?| looks?| sounds?)))\b",
)
_REACTION = whole_words(
    "(?:that|this|it|those|they)(?:'s| is| was| sounds?| looks?| must(?: be| have been)?| seems?|'re| are)(?: like)?"
    "(?: been)?(?: really| so| very| super| pretty| such| quite| truly| absolutely)*(?: an?| the)?(?: real)?"
    " (?:great|awesome|amazing|cool|wonderful|fantastic|incredible|lovely|beautiful|nice|sweet|inspiring|impressive|"
    "exciting|fun|good|gorgeous|stunning|tough|hard|rough|sad|terrible|awful|interesting|perfect|neat|delicious|"
    "adorable|cute|important|special)",
    r"(?:i'?m |so |really |super )*(?:proud|happy|glad|excited|thrilled|sorry|pleased|grateful|thankful)(?: \w+)?"
    r" (?:of|for|to|that|you)(?= (?:you|hear|see|know|have you|be (?:here|part)))",
    "(?:looks?|sounds?|feels?) (?:like|so|really|great|good|amazing|awesome|delicious|fun)",
    "can'?t wait to (?:hear|see)", "(?:i )?(?:hope|wish)(?:ing)? (?:you|it|that|things|all)", "let me know",
    "good luck", "best of luck", "enjoy", r"keep \w+ing", "way to go",
    "i (?:totally |completely |really |100% )?(?:agree|get it|hear you|understand|know what you mean)",
    "i'?m (?:always )?here (?:for|if)",
    "(?:so|how|such an?|what an?) (?:true|great|awesome|amazing|cool|wonderful|nice|sweet|lovely|beautiful|exciting|"
    "inspiring)",
    "(?:i )?(?:really )?appreciate (?:you|your|it|the)", "thanks for", "thank you for", "love (?:that|it|your|the|how)",
    "don'?t (?:give up|worry|forget to)", "let'?s (?:keep|catch|chat|talk|do it)", "we got this", at_start=True,
)  # fmt: skip
_SHORT_REACTION = 50
"""Maximum length, in characters, of a reaction such as "It was awesome". Longer ones go on to state facts."""
_LONG_REACTION = 100
_OWN_FACT = lazily(r"\d|\b(?:i|my|we|our)\b")

_ABOUT_PERSON = whole_words(
    "^(?:been|got|had|went|gonna|(?:try|hop|plann)ing to|(?:work|plann)ing on|looking for)",
    "(?:i|we|he|she|they)(?:'(?:m|ve|d|ll|re|s))?",
    "my",
    "me",
    "our",
    "us",
    "mine",
    "his",
    "her",
    "their",
)
_OWN = whole_words("(?:i|we)(?:'(?:m|ve|d|ll|re))?", "my", "me", "our", "us", "mine")
_SELF = whole_words("i(?:'(?:m|ve|d|ll))?", "my")
_YOU = whole_words("you(?:'(?:re|ve|d|ll))?", "yours?", "yourself")
_AMOUNT = whole_words(
    "once", "twice", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "dozens?",
    "(?:hour|day|week|month|year)s?",
)  # fmt: skip
_INTENDED = lazily(
    r"\b(?:(?:i|we)(?:'ll| will| plan to| intend to| hope to)|gonna|"
    r"(?:i'?m|we'?re|i am|we are|i was|we were) (?:\w+ly )?(?:going|planning|hoping|trying|off) to)\b"
    r"(?! (?:\w+ly )?(?:keep|never|always|make sure|continue|do (?:my|our) best))"  # good intentions
)
# Good intentions: "Let's keep going!"
_ENCOURAGES = lazily(
    r"\b(?:let'?s|(?:we|i)(?:'ll| will| can)) (?:\w+ly |all |just |always )?(?:keep \w+ing|never give up)\b"
)
TELLS = 3
"""Minimum number of uncommon words with which a sentence says something without any other cue."""
_FEW_WORDS = 6
"""Maximum number of words in a short sentence about a person, which says something with one uncommon word less."""
_TELLS_MUCH = 5
"""Minimum number of uncommon words with which a sentence about the speaker says something although it speaks to the
other person. With fewer, it is often a reaction: "I know your garden is lush".
"""
_FRAGMENT_WORDS = 3
"""Maximum number of words in a fragment, which may answer a question with one uncommon word: "Since school"."""


def distinctive_terms(text: str) -> frozenset[str]:
    """Return the terms of a text that are not common in texts about any subject."""
    from omcli.text.terms import folded_words, terms_of  # noqa: PLC0415 - only chats need it

    return terms_of([text])[0] - folded_words()


def is_known_language(text: str) -> bool:
    """Return True if at least two fifths of the words are common English words, so that the cues above apply."""
    from omcli.text.terms import FUNCTION_WORDS, folded, folded_words  # noqa: PLC0415

    words = [word.strip(MARKS) for word in plain(text).split()]
    known = sum(word.partition("'")[0] in FUNCTION_WORDS or folded(word) in folded_words() for word in words)
    return 5 * known >= 2 * len(words)


def chat_importance(sentence: str, names: frozenset[str] = frozenset(), *, answers: int = 0) -> int:
    """Return the importance of a sentence in a chat: 0 if it says nothing, 4 for a general statement, 5 if it is about
    the speaker or about somebody's deeds, plans or likes, and 6 if it answers a question or contains a name, number or
    date.

    A sentence that speaks to the other person says nothing, unless it is an answer, or also speaks of the speaker and
    either tells a deed or has `_TELLS_MUCH` uncommon words. An encouragement says nothing, unless it is an answer or
    has a date, a name or a number. Any other sentence needs `TELLS` uncommon words. About a person, it needs only one
    if it is an answer or has a date, a name or a number; otherwise one less for a deed, plan, preference or decision,
    and one less if it is short.

    `names` are terms that don't count, because they name the speakers. `answers` is the number of uncommon words that
    make a whole sentence an answer, or 0 if nothing was asked. If something was asked, any amount is an answer, too,
    except in a sentence that speaks to the other person and says nothing.
    """
    said = plain(sentence)
    count = len(distinctive_terms(sentence) - names)
    is_answer = bool(answers) and count >= (1 if len(said.split()) <= _FRAGMENT_WORDS else answers)
    tells_of_self = _OWN.search(said) and (count >= _TELLS_MUCH or _DID_SOMETHING.search(said))
    if _YOU.search(said) and not (tells_of_self or is_answer):
        return 0
    if answers and _AMOUNT.search(said):
        return 6
    is_typed = is_about_speaker(sentence) or user_type(sentence) in CHAT_TYPES
    does = bool(is_typed or _DID_SOMETHING.search(said) or _INTENDED.search(said))
    is_named = has_name_or_number(said) or bool(_WHEN.search(said) or _NAME_INSIDE.search(plain_quotes(sentence)))
    if _ENCOURAGES.search(said) and not (is_named or is_answer):
        return 0
    least = TELLS
    if _ABOUT_PERSON.search(said) or is_answer or is_typed:
        least = 1 if is_answer or is_named else TELLS - does - (len(said.split()) <= _FEW_WORDS)
    return 0 if count < least else 6 if is_answer or is_named else 5 if does or _SELF.search(said) else 4


def is_reaction(sentence: str) -> bool:
    """Return True if a sentence only reacts to the other person with praise, wishes or sympathy."""
    said = plain(sentence)
    reacts = _ABOUT_YOU.match(said) or (_REACTION.match(said) if len(said) <= _SHORT_REACTION else None)
    return bool(reacts and len(said) <= _LONG_REACTION and not _OWN_FACT.search(said, reacts.end()))


_WORDS_OF_QUESTIONS = frozenset("any ever else got get make really like ca wo".split())
_PREPOSITIONS = frozenset("of for in on at with from about to".split())


def question_label(question: str, name: str) -> str:
    """Return the words of a question that say what it is about, or "". `name` is the person that the question
    addresses.

    The words are uncommon ones, each with the word before it (unless that is a function word), and prepositions
    between two of them.
    """
    from omcli.text.terms import FUNCTION_WORDS  # noqa: PLC0415

    words = [word.strip(MARKS) for word in cues.without_opening(question, name).split()]
    said = [plain(word).partition("n't")[0].partition("'")[0] for word in words]
    asks = [word not in FUNCTION_WORDS and word not in _WORDS_OF_QUESTIONS for word in said]
    tells = [asked and bool(distinctive_terms(word)) for asked, word in zip(asks, words, strict=True)]
    kept = [tell or (asked and after) for tell, asked, after in zip(tells, asks, [*tells[1:], False], strict=False)]
    for at in range(1, len(words) - 1):
        kept[at] = kept[at] or (said[at] in _PREPOSITIONS and kept[at - 1] and kept[at + 1])
    return " ".join(word for word, is_kept in zip(words, kept, strict=True) if is_kept)
