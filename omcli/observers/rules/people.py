"""Rows about what people write to agents, such as prompts, answers, refusals, commands and notes.

A short prompt is kept verbatim in one row, apart from long code, but its lasting rules, preferences and decisions
become separate rows. A long prompt becomes several rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, filterfalse

from omcli.base import lazily
from omcli.base.record import replace
from omcli.memory.message import KeptMessage, MessageKind
from omcli.memory.observation import ASKED, Draft, Status, Type
from omcli.observers.rules import agents, cues, people_cues
from omcli.observers.rules.sentences import (
    MIN_CHARACTERS,
    Pasted,
    RowText,
    TextPart,
    cut,
    group_sentences,
    heading_texts,
    is_marked,
    joined_sentences,
    shared_words,
    split_question,
    text_draft,
    text_length,
    text_of,
    text_parts,
    without_code,
    word_count,
)
from omcli.text.clean import one_line
from omcli.text.phrases import anchors, counted

# Pasted data, markup and logs: they start with a bracket (but no link), a quoted key or a time, or have no words.
_PASTED = lazily(r"""^(?:(?!\[[^\[\]]{1,200}\]\()[{}\[\]<>|]|"[^"]*":|\d{4}-\d\d-\d\d[T ]\d\d:|at \S+[:(]|[\W\d_]*$)""")

# Heading of a list of questions, not all of which were answered.
_QUESTIONS_ASKED = "\n    Questions asked:\n"
_QUESTION_AND_ANSWER = lazily(r'^- "([^"\n]{1,400})"\n +Answer: ([^\n]{1,400})', re.MULTILINE)

_QUESTION_MARK = lazily("[?？؟]")
_NUMBERED = lazily(r"(?:^|\s)\d[.):] ")
# A command that the client did not know ("/hlep"), or only punctuation.
_NO_WORDS = lazily(r"^(?:[/\\:][A-Za-z][\w:-]*|[?!.…\s]+)$")

# Names another way to do what was refused: "no, use pnpm".
_OTHER_WAY = lazily(r"^\W*(?:(?:no|please|just|we|always|only)\W+)*(?:use|run|call|prefer)\b \w", re.IGNORECASE)
_COMMAND = lazily(r'"(?:command|cmd)":\s*"([^"\\]+)"')

# Added by a client below a plan.
_PLAN_END = lazily(r"^If you need specific details from before exiting plan mode\b[^\n]*", re.MULTILINE)

_PROMPT_WORDS = 40
"""Maximum length, in words, of a prompt that is kept verbatim."""
_PROMPT_CHARACTERS = 1600
"""Number of characters kept from a long prompt."""
_PLAN_HEADINGS = 3
"""Minimum number of headings of a prompt that is a plan: its title and two parts."""
_PLAN_CHARACTERS = 400
"""Number of characters kept from the headings of a plan."""
_MAX_RUN = 1000
"""Number of characters kept from text without spaces."""
_SHORT_ANSWER = 60
"""Maximum length, in characters, of an answer to an agent that is stored with its question."""
_WORD_LETTERS = 4
"""Minimum length of a word that an answer must share with a question to be about it."""
_QUESTION_CHARACTERS = 300
"""Number of characters kept from a question that is answered."""
_OTHER_WAY_WORDS = 8
"""Maximum number of words of a comment on a refused call that applies to other calls too."""
_STATEMENTS = frozenset({Type.DECISION, Type.FACT, Type.PREFERENCE})
_WORK_IMPORTANCE = 8
_PASTED_IMPORTANCE = 5
_PASTED_LINES = 4
"""Minimum number of pasted lines that get a row of their own in a short prompt."""
_PASTED_SHORT = 200
"""Maximum length, in characters, of pasted lines that stay in the row of a short prompt."""


# Headings such as "## Task" and "# User request", and the heading after one.
_REQUEST_HEADING = lazily(
    r"^ {0,3}#{1,6} +(?:(?:the|my|your|our|current|user|human)(?:['’]s)? )*(?:requests?|tasks?|questions?|query|prompt)"
    r"(?: for \w+)?:?[^\S\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_NEXT_HEADING = lazily(r"^ {0,3}#{1,6} +\S", re.MULTILINE)
# Before a clause with a subject or an order of its own.
_NEW_CLAUSE = lazily(
    r"[,;] (?:(?:and|but|so|then|also) )*(?=(?:i|we|my|our|please|always|never|from now on|do not|don't|let's|can you|"
    r"could you|how|what)\b)",
    re.IGNORECASE,
)


# ---- prompts


def prompt_drafts(prompt: KeptMessage, asked: KeptMessage | None) -> Iterable[Draft]:
    """Return the rows for a prompt. `asked` is the agent's last text, if any, which the prompt may answer."""
    speaker = prompt.message.name or "User"
    pasted = Pasted.of(_PLAN_END.sub("", prompt.message.text))
    text = without_code(pasted.words)
    question = question_of(asked)
    if asked and question and (cues.is_yes(text) or cues.is_no(text)):
        verb = "agreed" if cues.is_yes(text) else "declined"
        # Agreeing to an offer that names nothing ("want me to fix this?") is a request. Other answers are decisions.
        is_offer = agents.is_offer(question) and not anchors(question)
        kind = Type.REQUEST if is_offer and verb == "agreed" else Type.DECISION
        importance = 7 if is_offer else 8
        return [text_draft(prompt, f'{speaker} {verb} ("{text}") to: {question}', kind, importance, also=asked)]
    if not text or cues.is_yes(text) or cues.is_no(text) or (not question and _NO_WORDS.match(text)):
        return []
    if not question and people_cues.ends_work(text):
        return [text_draft(prompt, f"{speaker}: {text}", Type.EVENT, 3)]
    parts = text_parts(pasted.words)
    content = _with_content(parts)
    if not (content or prompt.message.images or "`" in text or any(map(cues.has_question_mark, map(text_of, parts)))):
        return []
    if word_count(pasted.restore(text)) > _PROMPT_WORDS or _shows_lines(pasted, content):
        return _long_prompt(prompt, speaker, pasted)
    question = question_of(asked, text) if len(text) <= _SHORT_ANSWER else ""
    return _short_prompt(prompt, speaker, pasted, pasted.words, (question, asked) if question else None)


def _shows_lines(pasted: Pasted, content: Iterable[TextPart]) -> bool:
    """Return True if a short prompt has pasted lines that do not belong in the row of its words: several with more than
    `_PASTED_SHORT` characters in total, or any beside an instruction, preference or decision.
    """
    shown = pasted.without_blocks()[1] if pasted.passages else []
    is_long = len(shown) >= _PASTED_LINES and sum(map(len, shown)) > _PASTED_SHORT
    return is_long or (bool(shown) and any(people_cues.user_type(part.text) in people_cues.LASTING for part in content))


def _short_prompt(
    prompt: KeptMessage, speaker: str, pasted: Pasted, words: str,
    answers: tuple[str, KeptMessage | None] | None = None,
) -> Iterator[Draft]:  # fmt: skip
    """Yield a row for the prompt, and a separate row for each lasting rule, preference or decision in it. The first row
    is omitted if the prompt contains nothing else.

    `answers` is the question that the prompt answers, with its message, or None. The first row that is yielded quotes
    the question.
    """
    suffix, also = (f" (answering: {answers[0]})", answers[1]) if answers else ("", None)
    content = _with_content(text_parts(words))
    for row, importance in _short_rows(without_code(words), content):
        kind = row.kind or Type.REQUEST
        said = f"{speaker} pasted: " if is_marked(row.text) else f"{speaker}: "
        yield text_draft(prompt, f"{said}{_cut_run(pasted.restore(row.text))}{suffix}", kind, importance, also=also)
        suffix, also = "", None


def _long_prompt(prompt: KeptMessage, speaker: str, pasted: Pasted) -> Iterator[Draft]:
    """Yield rows for the person's own words, then one row for the pasted lines, if any."""
    words, lines = pasted.without_blocks()
    parts = text_parts(words)
    content = _with_content(parts)
    request, frame = _split_request(words, content)
    if request:
        yield from _short_prompt(prompt, speaker, pasted, request)
        yield from _prompt_parts(prompt, speaker, pasted, _with_content(text_parts(frame)), after=request)
    elif word_count(pasted.restore(without_code(words))) > _PROMPT_WORDS:
        rest, plan = _plan(content or parts, heading_texts(words))
        if plan:
            yield text_draft(prompt, f"{speaker}: {_cut_run(pasted.restore(plan))}", Type.REQUEST, _WORK_IMPORTANCE)
        yield from _prompt_parts(prompt, speaker, pasted, rest, after=plan)
    elif content:
        yield from _short_prompt(prompt, speaker, pasted, words)
    if lines:
        from omcli.observers.rules.shell import has_error  # noqa: PLC0415

        kind = Type.REQUEST if not content else Type.FACT if has_error("\n".join(lines)) else Type.EXCERPT
        limit = _PASTED_CHARACTERS * (1 if content else 2)  # a prompt that says nothing else asks about it
        said = f"{speaker} pasted: {_cut_run(pasted_summary(lines, limit))}"
        yield text_draft(prompt, said, kind, _PASTED_IMPORTANCE)


def _split_request(words: str, content: Sequence[TextPart]) -> tuple[str, str]:
    """Return the part of a prompt below the last heading that announces a request, if it is short, and the rest of the
    prompt (instructions of a program, for example). Otherwise, or if the prompt begins with a request, return "" and
    the whole prompt.
    """
    *_, heading = (None, *_REQUEST_HEADING.finditer(words))
    if heading is None or not content or _asks(content[0].text):
        return "", words
    ended = _NEXT_HEADING.search(words, heading.end())
    end = ended.start() if ended else len(words)
    request = words[heading.end() : end].strip()
    is_short = word_count(request) <= _PROMPT_WORDS and _with_content(text_parts(request))
    return (request, f"{words[: heading.start()]}{words[end:]}") if is_short else ("", words)


def _plan(parts: Sequence[TextPart], titles: Sequence[str]) -> tuple[Sequence[TextPart], str]:
    """Return the sentences below the title of a plan or specification, and an outline of it: the sentences that
    introduce it, its title and its headings, in order. A long introduction is among the sentences instead. If the
    prompt is not a plan, return all its sentences and "".
    """
    start = next((at for at, part in enumerate(parts) if part.is_heading and part.text in titles[:1]), None)
    if start is None or len(titles) < _PLAN_HEADINGS:
        return parts, ""
    lead, title = parts[:start], parts[start]
    is_long = word_count(joined_sentences(lead)) > _PROMPT_WORDS
    outline = cut(" · ".join(titles[1:]), _PLAN_CHARACTERS)
    opening = joined_sentences([title] if is_long else [*lead, title])
    return [*(lead if is_long else ()), *parts[start + 1 :]], f"{opening}: {outline}"


def _with_content(parts: Sequence[TextPart]) -> list[TextPart]:
    """Return the sentences that have content, without courtesies. Questions after a comma become separate sentences, as
    do lasting rules, preferences and decisions beside a request.
    """
    questions = chain.from_iterable(map(split_question, parts))
    pieces = map(_without_courtesy, chain.from_iterable(map(_split_lasting, questions)))
    return list(filterfalse(_is_empty, pieces))


def _split_lasting(part: TextPart) -> Iterator[TextPart]:
    """Yield a sentence, split between a request and a lasting rule, preference or decision: "Fix the test; I prefer
    small commits".
    """
    start = 0
    is_prose = not part.is_heading and len(part.text) <= _PROMPT_CHARACTERS
    for joint in _NEW_CLAUSE.finditer(cues.plain_quotes(part.text)) if is_prose else ():
        before, after = part.text[start : joint.start()], part.text[joint.end() :]
        if (_asks(before) and _is_lasting_clause(after)) or (_is_lasting_clause(before) and _asks(after)):
            yield replace(part, text=before)
            start = joint.end()
    yield replace(part, text=part.text[start:])


def _asks(clause: str) -> bool:
    kind = people_cues.user_type(clause)
    return not _is_lasting_clause(clause) and (kind in ASKED or cues.is_imperative(clause))


def _is_lasting_clause(clause: str) -> bool:
    """Return True if a clause applies beyond its prompt."""
    return _is_lasting(RowText(clause, people_cues.user_type(clause)))


def _short_rows(text: str, content: Sequence[TextPart]) -> Iterator[tuple[RowText, int]]:
    rows = list(group_sentences(content, list(map(people_cues.user_type, map(text_of, content)))))
    rules = list(filter(_is_lasting, rows))
    rest = [row for row in rows if row not in rules]
    if rest or not rules:
        said = [row for row in rest if not is_marked(row.text)]
        importance = max((people_cues.user_importance(row.text, row.kind) for row in said), default=5)
        words = " ".join(row.text for row in rest) if rules else text
        yield RowText(words, _prompt_type(list(map(_told_type, said)))), importance
    for row in rules:
        yield row, people_cues.user_importance(row.text, row.kind)


def _told_type(row: RowText) -> Type | None:
    """Return the type of a part of a prompt. A fact next to an order has none, because it belongs to the order."""
    if row.kind is Type.FACT and cues.has_order(row.text):
        return None
    return row.kind or (Type.FACT if cues.is_fact(row.text) else None)


def with_work_importance(draft: Draft) -> Draft:
    """Return the row of a person's words to an agent at work, its importance raised to at least `_WORK_IMPORTANCE`,
    because such words direct the agent. A wish becomes a request. Events, and excerpts of pasted data, are unchanged.
    """
    if draft.type in (Type.EXCERPT, Type.EVENT):
        return draft  # pasted data, or a mere "stop"
    wished = draft.type is Type.FACT and cues.is_wanted(draft.text.partition(": ")[2])
    kind = Type.REQUEST if wished else draft.type
    return replace(draft, type=kind, importance=max(draft.importance, _WORK_IMPORTANCE))


def _without_courtesy(part: TextPart) -> TextPart:
    """Return a sentence without the courtesy before it: "Hi Claude, fix the test". A courtesy alone is unchanged."""
    if cues.is_courtesy(part.text):
        for rest, has_pause in cues.after_courtesy(part.text):
            if not cues.is_courtesy(rest) and (
                people_cues.user_type(rest) or cues.is_imperative(rest) or (has_pause and _is_content(rest))
            ):
                return replace(part, text=rest)
    return part


def _is_content(rest: str) -> bool:
    """Return True if words after a courtesy state a fact or are an order, not praise: "Hi, bump the version"."""
    is_praise = cues.is_yes(rest) or people_cues.is_reaction(rest) or cues.has_question_mark(rest)
    return word_count(rest) > 2 and not is_praise and (cues.is_fact(rest) or not cues.starts_statement(rest))


def _is_empty(part: TextPart) -> bool:
    return cues.is_courtesy(part.text) or cues.is_empty_question(part.text) or cues.is_preamble(part.text)


def _is_lasting(row: RowText) -> bool:
    """Return True if a row is a rule, preference or decision that applies beyond its prompt, and has at least
    `MIN_CHARACTERS`.
    """
    if text_length(row.text) < MIN_CHARACTERS or row.kind not in people_cues.LASTING:
        return False
    return row.kind is not Type.INSTRUCTION or people_cues.is_lasting_rule(row.text)


def _prompt_parts(
    prompt: KeptMessage, speaker: str, pasted: Pasted, parts: Sequence[TextPart], *, after: str
) -> Iterator[Draft]:
    """Yield rows for the most important sentences of a long prompt. The last row gives the number of those left out.
    `after` is the request or the outline of a plan in an earlier row, or empty. With it, these rows request nothing.
    """
    limit = _PROMPT_CHARACTERS - len(after)
    kept = _select([part for part in parts if not _PASTED.match(part.text)] or parts, limit)
    rows = list(group_sentences(kept, list(map(people_cues.user_type, map(text_of, kept)))))
    omitted = len(parts) - len(kept)
    for at, row in enumerate(rows):
        note = f" … [{counted(omitted)} more lines]" if omitted and at == len(rows) - 1 else ""
        importance = people_cues.user_importance(row.text, row.kind)
        if row.kind is None and at and row.text[0].islower():  # the continuation of a sentence
            importance = min(importance, 6)
        is_stated = after or (at and cues.is_statement(row.text))
        kind = row.kind or (Type.FACT if is_stated else Type.REQUEST)
        if after and kind in ASKED | {Type.CORRECTION}:
            kind = Type.FACT  # the steps of a plan are parts of one request
        yield text_draft(prompt, f"{speaker}: {_cut_run(pasted.restore(row.text))}{note}", kind, importance)


def _cut_run(text: str) -> str:
    """Shorten text that is too long for a row because it has no spaces."""
    if len(text) <= _MAX_RUN:
        return text
    return cut(text, _MAX_RUN).removesuffix("…") + "[a long text without spaces]"


def _prompt_type(kinds: Sequence[Type | None]) -> Type:
    """Return the type of a prompt, given the types of its sentences.

    A shared type or an opening correction is kept. A mix of statements, questions and plans gets the type of its first
    statement, but is a question if it starts with one or has no statement. Other prompts are requests.
    """
    if kinds and (len(set(kinds)) == 1 or kinds[0] is Type.CORRECTION):
        return kinds[0] or Type.REQUEST
    statements = [kind for kind in kinds if kind in _STATEMENTS and kinds[0] is not Type.QUESTION]
    if kinds and all(kind in _STATEMENTS or kind in (Type.QUESTION, Type.PLAN) for kind in kinds):
        return statements[0] if statements else Type.QUESTION
    return Type.REQUEST


def _select(parts: Sequence[TextPart], limit: int) -> list[TextPart]:
    """Return sentences of at most `limit` characters in total, in their order, or the first one if none is that short.

    The first and the last sentence are preferred, as are sentences with a type (such as a decision) or with anchors. A
    heading whose text is left out would stand above other text, so it is left out as well.
    """
    weights: list[tuple[int, int]] = []
    for index, text in enumerate(map(text_of, parts)):
        edge = 3 if index == 0 else 2 if index == len(parts) - 1 else 0
        weights.append((-edge - 2 * bool(people_cues.user_type(text)) - min(len(anchors(text)), 3), index))
    kept: list[int] = []
    room = limit
    for _, index in sorted(weights):
        if len(parts[index].text) < room:
            kept.append(index)
            room -= len(parts[index].text) + 1
    chosen = set(kept)
    told = [index for index in sorted(kept) if not parts[index].is_heading or index + 1 in chosen]
    return [parts[index] for index in told] or list(parts[:1])


def other_drafts(kept: KeptMessage, refused: KeptMessage | None) -> Iterator[Draft]:
    """Yield rows for a message that is not a prompt. `refused` is the tool call that the message refuses, if any."""
    text = without_code(kept.message.text)
    if not text:
        return
    if kept.message.kind is MessageKind.ANSWER:
        yield text_draft(kept, cut(f"User answered: {text}", 900), Type.DECISION, 8)
    elif kept.message.kind is MessageKind.REMARK and _QUESTIONS_ASKED in kept.message.text:
        if answers := "; ".join(
            f"{asked} → {answer}" for asked, answer in _QUESTION_AND_ANSWER.findall(kept.message.text)
        ):
            yield text_draft(kept, cut(f"User answered: {answers}", 900), Type.DECISION, 8)
    elif kept.message.kind is MessageKind.REMARK:
        yield _refuse_draft(kept, text, refused)
    elif kept.message.kind in (MessageKind.NOTE, MessageKind.RECAP):
        yield from (_note_drafts if kept.message.kind is MessageKind.NOTE else _summary_drafts)(kept)
    elif kept.message.kind is MessageKind.COMMAND:
        if " " in text.strip():
            yield text_draft(kept, cut(f"User ran: {text}", 900), Type.REQUEST, 6, status=Status.OPEN)
    elif kept.message.kind is MessageKind.SHELL:
        from omcli.observers.rules.shell import short  # noqa: PLC0415

        yield text_draft(kept, f"User ran in the shell: {short(kept.message.text)}", Type.EVENT, 3)
    elif kept.message.kind is MessageKind.INTERRUPT:
        yield text_draft(kept, "User interrupted the agent", Type.EVENT, 3)


def _refuse_draft(remark: KeptMessage, text: str, refused: KeptMessage | None) -> Draft:
    """Return the row for a person's comment on refusing a tool call. A comment that names another way to do what the
    refused command does ("use pnpm") applies to all such commands, so the row names the command.
    """
    tool = f" {refused.message.tool}" if refused and refused.message.tool else ""
    importance = 8
    is_short = word_count(text) <= _OTHER_WAY_WORDS
    if is_short and refused and _OTHER_WAY.match(text) and (command := _COMMAND.search(refused.message.text)):
        tool, importance = f" `{cut(command[1], _SHORT_ANSWER)}`", 9
    return text_draft(remark, cut(f"User refused{tool}: {text}", 900), Type.CORRECTION, importance, also=refused)


def _note_drafts(note: KeptMessage) -> Iterator[Draft]:
    """Yield rows for a written note. Sentences without a type are requests if they express a wish, otherwise facts."""
    content = _with_content(text_parts(note.message.text))
    for row in group_sentences(content, list(map(people_cues.user_type, map(text_of, content)))):
        kind = row.kind or (Type.REQUEST if cues.is_wanted(row.text) else Type.FACT)
        yield text_draft(note, f"User: {_cut_run(row.text)}", kind, people_cues.user_importance(row.text, kind))


def _summary_drafts(kept: KeptMessage) -> Iterator[Draft]:
    """Yield rows for an agent's summary of other messages, as facts, because no other row reports those messages."""
    opening, end = _SUMMARY_OPENING.match(kept.message.text), _SUMMARY_END.search(kept.message.text)
    text = kept.message.text[opening.end() if opening else 0 : end.start() if end else None]
    text = _INDENTED_FENCE.sub("", text)
    content = _with_content(text_parts(text)) or [TextPart(without_code(text))]
    for row in group_sentences(content, [Type.FACT] * len(content)):
        yield text_draft(kept, f"Agent: {_cut_run(row.text)}", Type.FACT, 6)


def question_of(asked: KeptMessage | None, answer: str = "") -> str:
    """Return the question in a message that a short answer replies to: the one that shares the most words with the
    answer, the last one among equals. So if the answer is empty, this is the last question. If the answer numbers as
    many parts as there are questions, return all of them.

    Return "" if there is no question, if the answer is a question itself, or if it is an order that shares no word with
    any question while the last question is an offer.
    """
    if asked is None or not _QUESTION_MARK.search(asked.message.text) or cues.has_question_mark(answer):
        return ""
    questions = list(filter(cues.has_question_mark, map(text_of, text_parts(asked.message.text))))
    if len(_NUMBERED.findall(answer)) == len(questions) > 1:
        return cut(" ".join(questions), _QUESTION_CHARACTERS)
    shared = [len(shared_words(answer, question, _WORD_LETTERS)) for question in questions]
    question = questions[max(range(len(shared)), key=lambda at: (shared[at], at))] if questions else ""
    if not any(shared) and agents.is_offer(question) and cues.is_imperative(answer):
        return ""
    return cut(question, _QUESTION_CHARACTERS)


# Added by clients around a summary. An analysis repeats it in other words.
_SUMMARY_OPENING = lazily(
    r"\s*(?:This session is being continued from|Another language model started to solve)[^\n]*\n\s*"
    r"(?:<analysis>.*?</analysis>\s*)?(?:(?:Analysis:\n.*?\n)?Summary:\n)?",
    re.DOTALL,
)
_SUMMARY_END = lazily(
    r"^(?:If you need specific details from before compaction|(?:Please c|C)ontinue the conversation from where)",
    re.MULTILINE,
)
_INDENTED_FENCE = lazily(r"^[ \t]+(?=```|~~~)", re.MULTILINE)

_PASTED_CHARACTERS = 400
"""Maximum number of characters kept from pasted lines."""


def pasted_summary(pasted: Sequence[str], limit: int = _PASTED_CHARACTERS) -> str:
    """Return the errors in pasted lines, then other lines with names, as far as they fit. Without errors, return the
    beginning of the lines. The number of lines follows.
    """
    from omcli.observers.rules.shell import error_lines, has_error  # noqa: PLC0415

    lines = list(map(one_line, pasted))
    text = error_lines("\n".join(lines), limit) if has_error("\n".join(lines)) else ""
    if len(text) > 1:
        for line, raw in zip(lines, pasted, strict=True):
            is_frame = raw[:1].isspace()
            if not is_frame and line not in text and anchors(raw) and len(text + raw) < limit:
                text += f" · {line}"
    else:
        text = cut(" · ".join(lines), limit)
    return f"{text} [{counted(len(lines))} pasted line{'s' if len(lines) > 1 else ''}]"
