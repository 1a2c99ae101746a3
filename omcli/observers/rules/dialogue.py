"""What people and agents say, to drafts: near-verbatim, with names, numbers and wording as they stand.

A prompt becomes one row, word for word where it is short, and what holds beyond it (standing instructions, preferences)
a row of its own. Of an agent's texts the last of a turn is what the turn came to; of those before it only findings,
decisions and blockers are kept, for the rest narrates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from omcli.memory.anchors import anchors
from omcli.memory.message import Aside, KeptMessage
from omcli.memory.observation import Draft, Status, Type
from omcli.observers.rules import cues
from omcli.observers.rules.salience import told_most
from omcli.observers.rules.sentences import Segment, prose, segments
from omcli.observers.rules.shell import counted, cut, shown

# Data and logs that somebody pasted: they begin with a bracket, a quoted key, a clock, or hold more signs than words.
_PASTED = re.compile(r"""^(?:[{}\[\]<>|]|"[^"]*":|\d{1,4}[-:/.]\d\d|at \S+[:(]|[^A-Za-z]*$)""")

PROMPT_CHARACTERS = 1200
"""Prompts up to this length are kept word for word; of longer ones whole sentences, as many as fit."""
OUTCOME_CHARACTERS = 700
_REMARKS_PER_TEXT = 2
"""Findings and decisions taken from one text in the middle of a turn."""
_REMARKS = frozenset({Type.FACT, Type.DECISION, Type.BLOCKER})
_REMARK_CHARACTERS = 30
_TELLS_SOMETHING = 20
"""Characters below which a sentence without a name in it says nothing."""
_OWN_ROW = (Type.DECISION, Type.BLOCKER, Type.QUESTION)
"""What an agent's closing sentence gets a row of its own for."""

_IMPORTANCE: Mapping[Type, int] = MappingProxyType({
    Type.INSTRUCTION: 9, Type.PREFERENCE: 8, Type.DECISION: 8, Type.CORRECTION: 8,
    Type.REQUEST: 7, Type.QUESTION: 6, Type.FACT: 6,
})  # fmt: skip
_AGENT_IMPORTANCE: Mapping[Type, int] = MappingProxyType({
    Type.BLOCKER: 7, Type.DECISION: 6, Type.OUTCOME: 6, Type.FACT: 5, Type.QUESTION: 5, Type.PLAN: 5,
})  # fmt: skip


def _draft(source: KeptMessage, text: str, kind: Type, importance: int, *, status: Status | None = None,
           also: KeptMessage | None = None) -> Draft:  # fmt: skip
    seqs = {source.seq} if also is None else {source.seq, also.seq}
    return Draft(text=text, type=kind, importance=importance, status=status, sources=tuple(sorted(seqs)),
                 event_at=source.message.at)  # fmt: skip


# ---- people


def said_by_person(prompt: KeptMessage, asked: KeptMessage | None) -> Iterator[Draft]:
    """Rows of one prompt. `asked` is what the agent said last before it: a bare yes or no is about that."""
    who = prompt.message.name or "User"
    text = prose(prompt.message.text)
    question = _last_question(asked)
    if not text:
        return
    if cues.agrees(text) or cues.declines(text):
        if question and asked:
            verb = "agreed" if cues.agrees(text) else "declined"
            # Yes to "want me to fix this?" sets work going; only a yes that names something binds what comes later.
            kind = Type.REQUEST if cues.offers(question) and not anchors(question) else Type.DECISION
            yield _draft(prompt, f'{who} {verb} ("{text}") to: {question}', kind, _IMPORTANCE[kind], also=asked)
        return
    telling = [part for part in segments(prompt.message.text) if not cues.is_pleasantry(part.text)]
    if not telling and not prompt.message.images and "`" not in text:
        return
    kind = _prompt_type([part.text for part in telling])
    words = text if len(text) <= PROMPT_CHARACTERS else _selected(telling, PROMPT_CHARACTERS)
    about = f" (answering: {question})" if question and len(words) <= 60 else ""
    yield _draft(prompt, f"{who}: {words}{about}", kind, _IMPORTANCE[kind], also=asked if about else None)
    if len(telling) > 1:
        for part in telling:
            alone = cues.user_type(part.text)
            if alone and cues.stands_alone(part.text) and _TELLS_SOMETHING <= len(part.text) <= 400:
                yield _draft(prompt, f"{who}: {part.text}", alone, _IMPORTANCE[alone])


def _prompt_type(sentences: Sequence[str]) -> Type:
    """The type of a prompt: that of its only sentence, or of most of them; else it is a request."""
    kinds = [cues.user_type(sentence) for sentence in sentences]
    if kinds and (len(kinds) == 1 or kinds[0] is Type.CORRECTION):
        return kinds[0] or Type.REQUEST
    for kind in (Type.QUESTION, Type.DECISION, Type.FACT):
        # Mostly this, and nothing that asks for work.
        mostly = sum(one is kind for one in kinds) * 2 >= len(kinds)
        if mostly and (kinds[0] is kind if kind is not Type.QUESTION else None not in kinds):
            return kind
    return Type.REQUEST


def _selected(parts: Sequence[Segment], limit: int) -> str:
    """Whole sentences in their order: the first, the last, then those that ask, rule or name the most, until full."""

    def weight(index: int) -> tuple[int, int]:
        text = parts[index].text
        edge = 3 if index == 0 else 2 if index == len(parts) - 1 else 0
        pasted = 6 if _PASTED.match(text) else 0
        return (pasted - edge - 2 * bool(cues.user_type(text)) - min(len(anchors(text)), 3), index)

    kept: list[int] = []
    room = limit - 40
    for index in sorted(range(len(parts)), key=weight):
        if len(parts[index].text) < room:
            kept.append(index)
            room -= len(parts[index].text) + 1
    if not kept:  # not even its shortest stretch fits: a script without spaces, or data
        return cut(parts[0].text, limit).replace("…", "[a long text without spaces]", 1) if parts else ""
    left = len(parts) - len(kept)
    return " ".join(parts[index].text for index in sorted(kept)) + (f" … [{counted(left)} more lines]" if left else "")


def said_among_people(said: KeptMessage) -> Iterator[Draft]:
    """The row of a message between people: what it states, without courtesies and questions; nobody instructs here."""
    telling = [
        part.text
        for part in segments(said.message.text)
        if not cues.is_pleasantry(part.text) and not cues.asks(part.text) and len(part.text) >= _TELLS_SOMETHING
    ]
    if telling:
        prefers = any(cues.user_type(text) is Type.PREFERENCE for text in telling)
        text = cut(f"{said.message.name or 'User'}: {' '.join(telling)}", PROMPT_CHARACTERS)
        yield _draft(said, text, Type.PREFERENCE if prefers else Type.FACT, 6 if prefers else 5)


def asides_of_person(said: KeptMessage, refused: KeptMessage | None) -> Iterator[Draft]:
    """Rows of words that stand where no prompt does. `refused` is the call that a remark refuses."""
    text = prose(said.message.text)
    if not text:
        return
    if said.message.aside is Aside.ANSWER:
        yield _draft(said, cut(f"User answered: {text}", 900), Type.DECISION, 8)
    elif said.message.aside is Aside.REMARK:
        tool = f" {refused.message.tool}" if refused and refused.message.tool else ""
        yield _draft(said, cut(f"User refused{tool}: {text}", 900), Type.CORRECTION, 8, also=refused)
    elif said.message.aside is Aside.QUEUED:
        yield from said_by_person(said, None)
    elif said.message.aside is Aside.COMMAND:
        if " " in text.strip():
            yield _draft(said, cut(f"User ran: {text}", 900), Type.REQUEST, 6, status=Status.OPEN)
    elif said.message.aside is Aside.SHELL:
        yield _draft(said, f"User ran in the shell: {shown(said.message.text)}", Type.EVENT, 3)
    elif said.message.aside is Aside.INTERRUPT:
        yield _draft(said, "User interrupted the agent", Type.EVENT, 4)


# ---- agents


def said_on_the_way(texts: Sequence[KeptMessage]) -> Iterator[Draft]:
    """What an agent found, decided or ran into, in texts in the middle of a turn; the rest of them narrates."""
    for text in texts:
        telling = [
            (part.text, cues.agent_type(part.text)) for part in segments(text.message.text) if not part.is_heading
        ]
        found = [(said, kind) for said, kind in telling if kind in _REMARKS and len(said) >= _REMARK_CHARACTERS]
        for said, kind in found[:_REMARKS_PER_TEXT]:
            status = Status.OPEN if kind is Type.BLOCKER else None
            yield _draft(text, f"Agent: {cut(said, 400)}", kind, _AGENT_IMPORTANCE[kind] - 1, status=status)


def said_last(text: KeptMessage, *, worked: bool, answered: bool) -> Iterator[Draft]:
    """What a turn came to: one row of the telling sentences, and a row for each that decides, lacks or asks.

    `worked` says that the agent used tools, so that the text reports; `answered` that a person spoke next.
    """
    parts = [part for part in segments(text.message.text) if not cues.is_talk(part.text)]
    kinds = [cues.agent_type(part.text) for part in parts]
    who = text.message.name or "Agent"
    reported = told_most(
        [part for part, kind in zip(parts, kinds, strict=True) if kind not in _OWN_ROW], OUTCOME_CHARACTERS
    )
    if len(reported) >= _TELLS_SOMETHING or anchors(reported):
        is_result = worked and any(kind is Type.OUTCOME for kind in kinds)
        status = Status.DONE if is_result else None
        yield _draft(text, f"{who}: {reported}", Type.OUTCOME if is_result else Type.FACT, 5 + worked, status=status)
    for part, kind in zip(parts, kinds, strict=True):
        if kind not in _OWN_ROW or len(part.text) < _TELLS_SOMETHING:
            continue
        if kind is Type.QUESTION and answered:
            continue  # the answer's row says what it answers
        status = None if kind is Type.DECISION else Status.OPEN
        yield _draft(text, f"{who}: {cut(part.text, 400)}", kind, _AGENT_IMPORTANCE[kind], status=status)


def _last_question(asked: KeptMessage | None) -> str:
    """The last question of a text, whole, within 300 characters; offers count, since yes is said to them as well."""
    if asked is None:
        return ""
    questions = [part.text for part in segments(asked.message.text) if cues.asks(part.text)]
    return cut(questions[-1], 300) if questions else ""
