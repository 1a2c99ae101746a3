"""Checks on rows that speak for the user: only the user's own words make a wish, a rule, a request or an identity.

Tool output, agents and pasted text can say anything, even that the user wants something. A row that a model makes
from such text names the speaker, whatever the row says (`Output of WebFetch says: …`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from string import punctuation

from omcli.base import lazily
from omcli.base.record import field, mutable_record, record
from omcli.llm.schema import ONLY_FROM_USER, is_of_user, rules_of_user
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.observation import IN_FORCE, SETTLED, Observation, Status, Type
from omcli.observers.model.evidence import Evidence
from omcli.observers.rules import cues
from omcli.observers.rules.pasted import split_pasted
from omcli.observers.rules.sentences import text_parts
from omcli.pack.tail import excerpt
from omcli.text.clean import AGENT, one_line
from omcli.text.phrases import OUTPUT_OF, speaks_for_user, words_of
from omcli.text.similarity import SPEAKERS, content_terms, shares_nothing, weight
from omcli.text.terms import COMMON_WORDS, FUNCTION_WORDS, NAME_LIKE, capital_terms, folded_words, term_list

_WORDS_OF_SAYING = frozenset(
    {"prefer", "assert", "ask", "want", "request", "instruct", "state", "said", "say", "decid"}
)
"""Terms with which rows report what somebody says. The messages themselves rarely contain them."""
_EVENTS_OF_USER = frozenset({MessageKind.COMMAND, MessageKind.SHELL, MessageKind.INTERRUPT})
_BY_SOMEBODY = frozenset({Type.DECISION, Type.PLAN})
_ORIGIN_SHARE = 0.5
"""Minimum share of a row's words in a passage, message or older row that may be the origin of the row."""
_ADDED_SHARE = 0.25
"""If this share of a lasting row's words occurs only in a passage, the row comes from the passage."""
_PLAIN_WORDS = FUNCTION_WORDS | COMMON_WORDS
_LEAST_COMMON = 0.25
"""Minimum share of words common in English among the words of an English text."""
_OUTPUT_CHARS = 8_000
"""Maximum number of characters of an output to search."""
_ANSWERED = frozenset({Type.REQUEST, Type.QUESTION, Type.TASK, Type.PLAN, Type.BLOCKER, Type.EVENT})
_WORK = frozenset({Type.REQUEST, Type.QUESTION, Type.PLAN})
"""Types of rows that may put a request of the user in other words."""
_LONGEST_TOOL = 60
_REPORTS = lazily(
    r"\b(?:page|site|document|file|text|output|result|tool|it|user)s?\b.{0,20} "
    r"(?:says?|said|states?|stated|claims?|tells?|asks?|wants?|prefers?|requests?|instructs?)\b|\baccording to\b",
    re.IGNORECASE,
)
"""Matches sentences that report what an output or a person says, such as "The page says the user prefers tabs"."""
_FIRST_PERSON = lazily(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b")
_BREAKS = lazily(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def is_from_user(message: Message) -> bool:
    """Return True if the user wrote at least the beginning of the message, as in a prompt, an answer or a command."""
    if message.agent is not None:
        return False  # the user of a subagent is an agent
    if message.role is Role.EVENT:
        return message.kind in _EVENTS_OF_USER
    return message.role is Role.USER and message.kind is not MessageKind.DELEGATED


def split_words(message: Message) -> tuple[str, str]:
    """Return the user's own words in a message, and the words of others in it: an output, a paste, a quotation, or an
    agent's.
    """
    if not is_from_user(message):
        return "", message.text
    if message.kind is MessageKind.SHELL:
        command, _, output = message.text.partition("\n")
        return command, output
    words, pasted = split_pasted(message.text)
    return words, "\n".join(pasted)


@record
class Attribution:
    """The messages that a row comes from, and the speaker that it must name."""

    sources: tuple[str, ...]
    """Labels of the messages."""
    also: tuple[int, ...] = ()
    """`seq` of the sources of an older row of the user that supports this one."""
    prefix: str = ""
    """Words that name the speaker, for a row that must not pass for the user's words; otherwise empty."""


@mutable_record
class Authority:
    """Searches the messages shown to a model for the origin of a row."""

    evidence: Evidence
    earlier: Sequence[Observation]
    """Older rows of the session, whose messages may be cited."""
    passages: dict[str, tuple[frozenset[str], ...]] = field(default_factory=dict)
    """Cache of the terms of each passage, by the label of its message. A passage is two successive lines of an output,
    a paste or a subagent's message.
    """

    def attribution(self, text: str, kind: Type, sources: Sequence[str], *, is_identity: bool) -> Attribution:
        """Return the origin of a row with this text, with a `prefix` unless the row fulfils these conditions.

        A decision or plan must cite the user or the agent. A row that speaks for the user needs one of these sources:

        - a cited message of the user that shares words with the row, or (if no passage shown has half of the row's
          words) that consists of the user's words alone;
        - if the row cites no message of the user, a new message of the user with half of the row's words, which is then
          cited;
        - an older row of the user with half of the row's words, whose messages are then cited.

        An added message or older row must have at least as many of the words as any passage. It must also say the same
        (see `_says_same`), unless the row is about work and the source is no rule of the user. If the row holds for
        later sessions or says who somebody is, no passage may add words (see `_source_of_new`), and none may have half
        of the row's words and more of them than the cited messages.
        """
        written = [label for label in sources if is_from_user(self._message(label))]
        if not self._is_claim(text, kind, sources, is_identity=is_identity):
            is_stated = kind not in _BY_SOMEBODY or written or any(map(self._is_spoken, sources))
            prefix = "" if is_stated else self.heard_from(text, sources) or self._speaker(sources)
            return Attribution(sources=tuple(sources), prefix=prefix)
        terms = _terms_of_claim(text)
        passage, heard = self._best_passage(terms)
        answered = sources if any(map(self._is_yes_or_no, written)) else written
        lasts = is_identity or kind in IN_FORCE
        if lasts and (origin := self._source_of_new(text, sources, answered)):
            return Attribution(sources=self.evidence.in_order((*sources, origin)), prefix=self._speaker([origin]))
        if written:
            own = self._share(terms, filter(self._is_spoken, answered))
            is_own = own > 0 and (own >= heard or not lasts)
            is_pure = any(not split_words(self._message(label))[1] for label in written)
            if is_own or (heard < _ORIGIN_SHARE and (own > 0 or is_pure)):
                return Attribution(sources=tuple(sources))
        found = None if written else self._best_written(terms, at_least=max(_ORIGIN_SHARE, heard))
        if found and (kind in _WORK or _says_same(text, self._own_words(found))):
            return Attribution(sources=self.evidence.in_order((*sources, found)))
        also = self._best_earlier(terms, at_least=max(_ORIGIN_SHARE, heard))
        if also and ((kind in _WORK and not rules_of_user(also)) or _says_same(text, also.text)):
            return Attribution(sources=tuple(sources), also=also.sources)
        if passage is not None and heard >= _ORIGIN_SHARE:
            sources = self.evidence.in_order((*sources, passage))
            return Attribution(sources=tuple(sources), prefix=self._speaker([passage]))
        return Attribution(sources=tuple(sources), prefix=self._speaker(sources))

    def task_sources(self, text: str) -> tuple[int, ...]:
        """Return the `seq` of the messages that the current task comes from.

        These are the user's message that shares the most words with the task, and the last new message, which dates the
        task. If no message of the user is shown, the sources of the user's best-matching older row take its place. The
        result is empty if there is no such message or row, or if the task is only heard.
        """
        if self.is_only_heard(text):
            return ()
        terms = _terms_of_claim(text)
        spoken = [label for label in self.evidence.shown.labels if self._is_spoken(label)]
        last = self.evidence.shown.labels[self.evidence.in_order(self.evidence.shown.new)[-1]]
        if best := self._best_written(terms, at_least=0, labels=spoken):
            return tuple(sorted({self.evidence.shown.labels[best].seq, last.seq}))
        older = self._best_earlier(terms, at_least=0)
        return tuple(sorted({*older.sources, last.seq})) if older else ()

    def is_only_heard(self, text: str) -> bool:
        """Return True if a passage contains at least half of the text's words, and more of them than all that the user
        and the agent say: their own words, and the older rows of the user.

        Sentences of either that report what an output says do not count.
        """
        terms = _terms_of_claim(text)
        _, heard = self._best_passage(terms)
        spoken = [label for label in self.evidence.shown.labels if self._is_spoken(label)]
        said = [*self._spoken_sentences(spoken), *map(_own_words_of, self._of_user())]
        return heard >= _ORIGIN_SHARE and heard > _share(terms, frozenset().union(*map(content_terms, said)))

    def heard_from(self, text: str, labels: Sequence[str]) -> str:
        """Return words that name the speaker of a row if only an output, a paste or a subagent says it, otherwise "".

        For that, a cited passage must have half of the row's words, and more of them than the cited calls and the cited
        words of user and agent together. Sentences of either that report an output do not count. If neither user nor
        agent is cited, the passage only needs as many of the words as the calls. Passages that are not cited count, too
        (see `_heard_besides`), if the cited messages have none of the words that say what the row is about, or if they
        are all the agent's and one of them reports an output.
        """
        others = [label for label in labels if not self._is_call(label) and self._words_of_others(label)]
        spoken = [label for label in labels if self._is_spoken(label) and self._own_words(label)]
        terms = _terms_of_claim(text)
        calls = [f"{each.tool} {each.text}" for each in map(self._message, filter(self._is_call, labels))]
        if others:
            heard = max((_share(terms, passage) for label in others for passage in self._passages(label)), default=0.0)
            own = _share(terms, frozenset[str]().union(*map(content_terms, (*calls, *self._spoken_sentences(spoken)))))
            if (heard >= _ORIGIN_SHARE and heard > own) if spoken else heard >= own:
                return self._speaker(others)
        own_words = "\n".join(map(self._own_words, spoken))
        cited = "\n".join((own_words, *calls, *map(self._words_of_others, others)))
        is_report = all(map(self._is_by_agent, labels)) and any(
            _REPORTS.search(self._own_words(each)) for each in labels
        )
        return self._heard_besides(text, own_words) if is_report or shares_nothing(cited, terms) else ""

    def _heard_besides(self, text: str, own_words: str) -> str:
        """Return words that name the speaker of the passage with the most of a row's words. Return "" if the passage
        has less than half of them, or no more of them than one message of user or agent or one older row of the user.

        If `own_words` (the cited words of user and agent) are in another language than the row, the passage must have
        all of the row's words instead of half.
        """
        terms = _terms_of_claim(text)
        passage, heard = self._best_passage(terms)
        if passage is None or heard < (1 if _in_other_language(text, own_words) else _ORIGIN_SHARE):
            return ""
        said = (
            "\n".join(self._spoken_sentences([each])) for each in self.evidence.shown.labels if self._is_spoken(each)
        )
        told = max(_share(terms, content_terms(each)) for each in (*said, *(row.text for row in self._of_user()), ""))
        return self._speaker([passage]) if heard > told else ""

    def may_replace(self, old: Observation, text: str, attribution: Attribution, status: Status | None) -> bool:
        """Return True if a row with this text and origin may replace an older one. A row with a `prefix` never may.

        Only a row that cites the user may replace a row of the user, with two exceptions. A row that cites the agent,
        or that is settled, may replace a request, question, task, plan, blocker or event. A row that cites the agent
        may replace a decision that is no rule of the user and does not speak for the user. A rule of the user is
        replaced only if words of the user that the older row does not cite (or the question that they answer) share a
        word with either row, and the new row is not heard (see `heard_from`).
        """
        if attribution.prefix:
            return False
        labels = self.evidence.shown.labels
        written = [label for label in attribution.sources if is_from_user(self._message(label))]
        if written and rules_of_user(old):
            said = attribution.sources if any(map(self._is_yes_or_no, written)) else written
            said = [label for label in said if labels[label].seq not in old.sources]
            shared = self._share(_terms_of_claim(text) | _terms_of_claim(old.text), said)
            return shared > 0 and not self.heard_from(text, attribution.sources)
        if written:
            return True
        is_spoken = any(map(self._is_spoken, attribution.sources))
        if not is_of_user(old):
            return True
        if old.type is Type.DECISION:
            return is_spoken and not (rules_of_user(old) or speaks_for_user(old.text))
        return old.type in _ANSWERED and (is_spoken or status in SETTLED)

    def _is_claim(self, text: str, kind: Type, sources: Sequence[str], *, is_identity: bool) -> bool:
        """Return True if the row speaks for the user (by its type or words, as an identity, or because it begins with
        the user's name), or if it uses the first person and cites neither user nor agent.
        """
        is_spoken = any(map(self._is_spoken, sources))
        if kind in ONLY_FROM_USER or is_identity or speaks_for_user(text, is_agent=is_spoken):
            return True
        users = {message.name for message in map(self._message, self.evidence.shown.labels) if is_from_user(message)}
        return any(name and text.startswith((f"{name} ", f"{name}:")) for name in users) or not (
            is_spoken or not _FIRST_PERSON.search(text)
        )

    def _speaker(self, labels: Sequence[str]) -> str:
        """Return words that name the speaker of the last output, or otherwise the shell, pasted text or the agent."""
        messages = [self._message(label) for label in labels]
        outputs = [message for message in messages if message.role is Role.RESULT]
        if outputs:
            return f"{OUTPUT_OF}{one_line(outputs[-1].tool or 'a tool')[:_LONGEST_TOOL]} says: "
        if any(message.kind is MessageKind.SHELL for message in messages):
            return f"{OUTPUT_OF}the shell says: "
        return "Pasted text says: " if any(map(is_from_user, messages)) else AGENT

    def _best_passage(self, terms: frozenset[str]) -> tuple[str | None, float]:
        """Return the label of the message whose passage contains the largest share of the terms, and that share."""
        shares = [
            (max((_share(terms, passage) for passage in self._passages(label)), default=0.0), place, label)
            for place, label in enumerate(self.evidence.shown.labels)
        ]
        best, _, label = max(shares, default=(0.0, 0, None))
        return label, best

    def _best_written(self, terms: frozenset[str], *, at_least: float, labels: Iterable[str] = ()) -> str | None:
        """Return the label of the user's message with the largest share of the terms, or None if its share is less than
        `at_least`.

        Without `labels`, only new messages are searched.
        """
        written = [label for label in labels or self.evidence.shown.new if is_from_user(self._message(label))]
        best = max(self.evidence.in_order(written), key=lambda label: self._share(terms, [label]), default=None)
        return best if best and self._share(terms, [best]) >= at_least else None

    def _source_of_new(self, text: str, sources: Sequence[str], answered: Sequence[str]) -> str | None:
        """Return the label of the first message with a passage that has enough new words of the row, or None.

        Words are new if neither a message or older row of the user nor an answered message contains them. In a cited
        message, one uncommon new word is enough. In others, it takes two of them, or one that is a name or anchor. In
        any message, new words that make up a quarter of the row's words are enough.
        """
        terms = _terms_of_claim(text)
        labels = self.evidence.shown.labels
        own = (self._own_words(label) for label in labels if is_from_user(self._message(label)))
        said = [*own, *self._spoken_sentences(answered), *map(_own_words_of, self._of_user())]
        unsaid = terms.difference(*map(content_terms, said))
        names = {term for term in unsaid if NAME_LIKE.search(term)} | (unsaid & capital_terms([text]))
        for label in labels:
            for passage in self._passages(label):
                added = (unsaid & passage) - folded_words()
                if added and (label in sources or len(added) > 1 or added & names):
                    return label
                if unsaid and weight(unsaid & passage) >= _ADDED_SHARE * weight(terms):
                    return label
        return None

    def _of_user(self) -> list[Observation]:
        return [row for row in self.earlier if row.sources and is_of_user(row)]

    def _best_earlier(self, terms: frozenset[str], *, at_least: float) -> Observation | None:
        """Return the user's older row with the largest share of the terms, or None if its share is less than
        `at_least`.
        """
        best = max(self._of_user(), key=lambda row: _share(terms, _terms_of_row(row)), default=None)
        return best if best and _share(terms, _terms_of_row(best)) >= at_least else None

    def _share(self, terms: frozenset[str], labels: Iterable[str]) -> float:
        """Return the share of the terms that the user's or the agent's own words in these messages contain."""
        words = (content_terms(self._own_words(label)) for label in labels)
        return _share(terms, frozenset().union(*words))

    def _own_words(self, label: str) -> str:
        message = self._message(label)
        return message.text if message.role is Role.ASSISTANT else split_words(message)[0]

    def _spoken_sentences(self, labels: Iterable[str]) -> Iterator[str]:
        """Yield the user's and the agent's own sentences in these messages, except reports of what an output says."""
        for label in labels:
            yield from (part.text for part in text_parts(self._own_words(label)) if not _REPORTS.search(part.text))

    def _words_of_others(self, label: str) -> str:
        return "" if self._is_by_agent(label) else split_words(self._message(label))[1]

    def _is_yes_or_no(self, label: str) -> bool:
        """Return True if the message agrees or declines, so that its meaning is in the message that it answers."""
        words = self._own_words(label)
        return cues.is_yes(words) or cues.is_no(words)

    def _passages(self, label: str) -> tuple[frozenset[str], ...]:
        """Return the terms of each passage (two successive lines) of an output or a paste."""
        if label not in self.passages:
            said = "" if self._is_call(label) else self._words_of_others(label)
            lines = [content_terms(line) for line in _BREAKS.split(excerpt(said, _OUTPUT_CHARS)) if line.strip()]
            self.passages[label] = tuple(one | other for one, other in pairwise([*lines, frozenset[str]()]))
        return self.passages[label]

    def _is_spoken(self, label: str) -> bool:
        return is_from_user(self._message(label)) or self._is_by_agent(label)

    def _is_by_agent(self, label: str) -> bool:
        """Return True if the session's agent wrote the message, not a subagent."""
        message = self._message(label)
        return message.role is Role.ASSISTANT and message.agent is None

    def _is_call(self, label: str) -> bool:
        return self._message(label).role is Role.CALL

    def _message(self, label: str) -> Message:
        return self.evidence.shown.labels[label].message


def _own_words_of(row: Observation) -> str:
    """Return the user's own words in a row."""
    return split_pasted(words_of(row.text))[0]


def _terms_of_row(row: Observation) -> frozenset[str]:
    return content_terms(_own_words_of(row))


def _terms_of_claim(text: str) -> frozenset[str]:
    """Return the terms of a row, without those that only report who says it."""
    return content_terms(text) - SPEAKERS - _WORDS_OF_SAYING


def _says_same(text: str, said: str) -> bool:
    """Return True if a sentence of `said` contains the words of the claim `text` in order, and negates as often."""
    claim = [term for term in term_list(text) if term not in SPEAKERS | _WORDS_OF_SAYING]
    for part in text_parts(said):
        words = term_list(part.text)
        rest = iter(words)
        if words.count("not") == claim.count("not") and all(term in rest for term in claim):
            return bool(claim)
    return False


def _in_other_language(text: str, said: str) -> bool:
    """Return True if many words of the row `text` are common in English, but few words of `said`."""
    return _plain_share(said or text) < _LEAST_COMMON <= _plain_share(text)


def _plain_share(text: str) -> float:
    words = text.lower().split()
    return sum(word.strip(punctuation) in _PLAIN_WORDS for word in words) / max(1, len(words))


def _share(terms: frozenset[str], found: frozenset[str]) -> float:
    return weight(terms & found) / weight(terms) if terms else 0.0
