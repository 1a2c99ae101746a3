"""Asking the memory: a model answers a question from the rows and messages that recalling finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from omcli.base import lazily
from omcli.base.errors import BadUsage, CutOff, Unusable
from omcli.base.record import record, replace
from omcli.llm import prompts
from omcli.llm.model import Calls, Prompt, Provider, Reply
from omcli.llm.replies import is_cut_off, json_in, label_in, text_of, texts_of, whole
from omcli.llm.schema import TEXT, TEXTS, is_only_heard, object_of
from omcli.memory.message import KeptMessage, Role, TokenCounter
from omcli.memory.observation import FILE_CHANGES, SETTLED, TOOL_EVENTS, UNVERIFIED, Observation, handle
from omcli.observers.model.authority import split_words
from omcli.operations.recall import RecallResult
from omcli.pack.tail import excerpt
from omcli.text.clean import clean, one_line
from omcli.text.hashes import hash_of
from omcli.text.instants import minute
from omcli.text.phrases import OUTPUT_OF, searchable, unknown_names

_LONGEST_TEXT = 1_500
"""Maximum number of characters that the model is shown of a row, a message or a passage: a screenful, so that a few
results don't use up the budget.
"""
_LONGEST_ANSWER = 10_000
"""Maximum length of an answer, in characters. Only a model that loops writes more."""
_CITED = lazily(
    r"[ \t]{0,2}[\[(][ \t]{0,2}(?P<labels>[om][0-9]{1,4}(?:[ \t]{0,2}[,;][ \t]{0,2}[om][0-9]{1,4})*)[ \t]{0,2}[\])]"
)
_LABEL = lazily("[om][0-9]+")
_FROM_OUTPUT = TOOL_EVENTS - FILE_CHANGES
"""Types of rows that may repeat words of an output."""
_SCHEMA = object_of({"answer": TEXT, "cites": TEXTS})


@record
class Question:
    """A question with the results from which to answer it, the best first, and parameters of the prompt."""

    text: str
    results: Sequence[RecallResult]
    budget: int
    """Maximum number of tokens of the results that are shown to the model."""
    now: str
    session: str | None = None
    """Session to record in the ledger, if only this one was searched."""
    project_of: Callable[[str], str | None] = lambda _: None
    """Function that returns the project of a session."""
    max_output: int | None = None
    temperature: float | None = None


@record
class AnsweredQuestion:
    text: str
    """The answer, with handles of rows and ids of messages in brackets after the statements that they support."""
    shown: tuple[RecallResult, ...]
    """The results that the model was shown, the best first."""
    cites: tuple[RecallResult, ...]
    """The results that the answer rests on, in the order in which it names them."""
    heard: tuple[RecallResult, ...]
    """The results in `cites` that only an output, pasted text or a subagent says."""
    unverified: tuple[str, ...]
    """Names in the answer that neither the question nor any verified result contains."""
    unknown: int
    """Number of labels in the reply that the model was not shown."""


def ask(question: Question, provider: Provider, counter: TokenCounter) -> AnsweredQuestion:
    """Return the model's answer to a question. If the reply is Unusable, the model is asked once more, with the reason.

    Raise BadUsage if not even one result fits into the budget. Raise the errors of the provider and of reading its
    reply (`_answer_of`).
    """
    shown = _shown(question, counter)
    calls = Calls()

    def reply(correction: str = "") -> Reply:
        reads = partial(_answer_of, shown=shown, question=question)
        return provider.ask(replace(_prompt(question, shown, correction), reads=reads, calls=calls))

    first = reply()
    try:
        return _answer_of(first, shown=shown, question=question)
    except Unusable as error:
        if calls.is_over:
            raise
        return _answer_of(reply(f"Your last reply could not be used: {error.message}."), shown=shown, question=question)


def meter(question: Question, provider: Provider, counter: TokenCounter) -> None:
    """Give the prompt to a provider that only counts it. Raise BadUsage as `ask` does."""
    provider.ask(_prompt(question, _shown(question, counter), ""))


# ---- what the model is shown


def _shown(question: Question, counter: TokenCounter) -> Mapping[str, RecallResult]:
    """Return the best results that fit into the budget, by label, oldest first."""
    fitting: list[RecallResult] = []
    room = question.budget
    for result in question.results:
        cost = counter.text(_line("o999", result, question, has_project=True))
        if cost <= room:
            room -= cost
            fitting.append(result)
    if not fitting:
        raise BadUsage(f"`--budget {question.budget}` is too small for any result")
    labels = {"o": 0, "m": 0}
    found = {}
    for result in sorted(fitting, key=_dated):
        letter = "m" if result.row is None else "o"
        labels[letter] += 1
        found[f"{letter}{labels[letter]}"] = result
    return found


def _dated(result: RecallResult) -> str:
    """Return the time of a row or message, or "" for a message without one."""
    return result.row.dated if result.row is not None else (_message_of(result).message.at or "")


def _message_of(result: RecallResult) -> KeptMessage:
    assert result.message is not None, "a result is a row or a message"
    return result.message


def _project_of(result: RecallResult, question: Question) -> str | None:
    return result.row.project if result.row is not None else question.project_of(_message_of(result).session)


def _line(label: str, result: RecallResult, question: Question, *, has_project: bool) -> str:
    """Return a result as a line of the prompt. Later lines of a message follow on the same line."""
    project = _project_of(result, question) if has_project else None
    where = f" in {one_line(project).rstrip('/').rpartition('/')[2]}" if project else ""
    when = minute(_dated(result)) if _dated(result) else "undated"
    if result.row is not None:
        about, text = _kind(result.row), result.row.text
    else:
        about, text = _speaker(_message_of(result)), _message_of(result).message.text
    said = excerpt(text, _LONGEST_TEXT)
    if result.row is None and result.passage.text not in said:
        said = f"{said} … {excerpt(result.passage.text, _LONGEST_TEXT)}"
    return f"{label} {when}{where}, {about}: {one_line(said)}"


def _kind(row: Observation) -> str:
    status = row.status if row.status in SETTLED else None
    state = None if row.is_visible else "superseded" if row.superseded_by else "dropped"
    return " ".join(filter(None, (row.type, status, state, UNVERIFIED if UNVERIFIED in row.tags else None)))


def _speaker(kept: KeptMessage) -> str:
    said = kept.message
    tool = one_line(said.tool or "a tool")
    if said.role is Role.RESULT:
        return f"{OUTPUT_OF}{tool}"
    name = f"call of {tool}" if said.role is Role.CALL else one_line(said.name or said.role)
    return f"{name} (subagent)" if said.agent is not None else name


def _prompt(question: Question, shown: Mapping[str, RecallResult], correction: str) -> Prompt:
    has_projects = len({_project_of(result, question) for result in shown.values()}) > 1
    lines = "\n".join(_line(label, result, question, has_project=has_projects) for label, result in shown.items())
    fence = f"memory-{hash_of(question.now, question.text, lines):016x}"  # no line can contain it
    return Prompt(
        system=prompts.prompt("ask"),
        content=(
            f"Today is {question.now[:10]}. These are the rows and messages, oldest first:\n",
            f"{fence}\n{lines}\n{fence}\n",
            f"The question: {question.text.strip()}\n",
            "\n".join(filter(None, (correction, "Reply with the JSON object and nothing else."))),
        ),
        schema=_SCHEMA,
        name="answer",
        max_output=question.max_output,
        temperature=question.temperature,
        session=question.session,
    )


# ---- what is kept of the reply


def _answer_of(reply: Reply, *, shown: Mapping[str, RecallResult], question: Question) -> AnsweredQuestion:
    """Return the answer in a reply, which may be JSON or prose. Raise the errors of `whole`, CutOff if JSON breaks off,
    and Unusable if it has no answer.
    """
    text = whole(reply)
    value = json_in(text)
    if value is None and is_cut_off(text):
        raise CutOff(f"the reply of {reply.model} was cut off")
    said = clean(text if value is None else text_of(value, "answer")).strip()[:_LONGEST_ANSWER]
    if not said:
        raise Unusable("the reply has no `answer`")
    inline = [label for found in _CITED.finditer(said) for label in _LABEL.findall(found["labels"])]
    listed = list(map(label_in, texts_of(value, "cites")))
    labels = list(dict.fromkeys((*inline, *listed)))
    cites = {label: shown[label] for label in labels if label in shown}
    heard = {label: result for label, result in cites.items() if _is_heard(result)}
    answer = _CITED.sub(lambda found: _handles(_LABEL.findall(found["labels"]), shown), said).strip()
    answer += _handles([label for label in cites if label not in inline], shown)
    return AnsweredQuestion(
        text=answer,
        shown=tuple(result for result in question.results if result in shown.values()),
        cites=tuple(cites.values()),
        heard=tuple(heard.values()),
        unverified=unknown_names(
            _CITED.sub("", said), [searchable(f"{question.text} {question.now[:10]}"), *_sources(shown.values())]
        ),
        unknown=len(labels) - len(cites),
    )


def _handles(labels: Iterable[str], shown: Mapping[str, RecallResult]) -> str:
    """Return the handles and ids of the known labels in brackets, with ` from output` after heard results."""
    names = [
        f"{_name(shown[label])}{' from output' if _is_heard(shown[label]) else ''}"
        for label in dict.fromkeys(labels)
        if label in shown
    ]
    return f" [{', '.join(names)}]" if names else ""


def _name(result: RecallResult) -> str:
    """Return the handle of a row, or the printed id of a message."""
    return handle(result.row.id) if result.row is not None else _message_of(result).key


def _is_heard(result: RecallResult) -> bool:
    """Return True if the words of a row or message come from neither the user nor the agent."""
    if result.row is not None:
        return is_only_heard(result.row) or result.row.type in _FROM_OUTPUT
    said = _message_of(result).message
    if said.agent is None and said.role in (Role.ASSISTANT, Role.CALL):
        return False
    return not split_words(said)[0].strip()


def _sources(results: Iterable[RecallResult]) -> Iterable[str]:
    """Yield the texts that verify names. An unverified row verifies none."""
    for result in results:
        if result.row is not None and UNVERIFIED not in result.row.tags:
            yield searchable(f"{minute(result.row.dated)} {result.row.refers_to or ''} {result.row.text}")
        if result.message is not None:
            said = result.message.message
            when = minute(said.at) if said.at else ""
            yield searchable(f"{when} {said.name or ''} {said.tool or ''} {said.exit_code or ''} {said.text}")
