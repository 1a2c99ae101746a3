"""The model observer's prompt: instructions, context rows, date and project, and the fenced transcript."""

from __future__ import annotations

from collections.abc import Iterator

from omcli.base.record import record
from omcli.llm import prompts
from omcli.llm.model import Picture, Prompt
from omcli.llm.replies import whole
from omcli.observers.model.evidence import ContextRows, Evidence
from omcli.observers.model.reply import NAME, SCHEMA, parse_reply
from omcli.observers.model.transcript import TranscriptView, shown_minute
from omcli.text.clean import one_line

_CLOSING = "Answer with the JSON object that your rules describe, about the transcript above, and nothing else."


@record
class PromptContext:
    """The situation that a prompt describes, and additional instructions."""

    now: str
    cwd: str | None
    guidance: str | None
    """Additional instructions from the user's configuration."""
    correction: str = ""
    """Sentences that say what was wrong with the previous reply. Empty in the first prompt."""
    session: str | None = None
    """Session to record in the spend ledger. It is not shown to the model."""


def observer_prompt(
    evidence: Evidence,
    situation: PromptContext,
    *,
    token: str,
    max_output: int | None,
    temperature: float | None,
) -> Prompt:
    """Build the observer's prompt. `token` makes the fence around the transcript unguessable."""
    shown = evidence.shown
    parts = (
        *_preamble(evidence.recorded, situation, shown.utc_offset),
        *_quoted(shown, token),
        f"\n{_CLOSING}",
        f"\n{situation.correction}",
    )
    return Prompt(
        system=prompts.prompt("observer"),
        content=tuple(_joined_texts(parts)),
        schema=SCHEMA,
        name=NAME,
        max_output=max_output,
        temperature=temperature,
        session=situation.session,
        reads=lambda reply: parse_reply(whole(reply)),
    )


def without_token(token: str, text: str) -> str:
    """Remove the fence's token from text, repeatedly, because a removal can create another occurrence."""
    while token and token in text:
        text = text.replace(token, "")
    return text


def _preamble(recorded: ContextRows, situation: PromptContext, utc_offset: int | None) -> Iterator[str]:
    if recorded.lines:
        yield "Already recorded, do not repeat:\n"
        yield from (f"{line}\n" for line in recorded.lines)
        yield "\n"
    if recorded.shared_lines:
        yield "Known from notes and earlier sessions, do not repeat or replace:\n"
        yield from (f"{line}\n" for line in recorded.shared_lines)
        yield "\n"
    yield f"Today: {shown_minute(situation.now, utc_offset)[:10]}. Times below: {_offset_name(utc_offset)}.\n"
    if situation.cwd:
        cwd = one_line(situation.cwd)
        yield f"Project: {cwd.rstrip('/').rpartition('/')[2]}, in {cwd}\n"
    if situation.guidance:
        yield f"Guidance from the user: {situation.guidance.strip()}\n"


def _quoted(shown: TranscriptView, token: str) -> Iterator[str | Picture]:
    yield f"\n<<< transcript {token}\n"
    yield from (without_token(token, part) if isinstance(part, str) else part for part in shown.content)
    yield f">>> transcript {token}\n"


def _offset_name(utc_offset: int | None) -> str:
    if not utc_offset:
        return "UTC"
    hours, minutes = divmod(abs(utc_offset), 60)
    return f"UTC{'-' if utc_offset < 0 else '+'}{hours:02}:{minutes:02}"


def _joined_texts(parts: tuple[str | Picture, ...]) -> Iterator[str | Picture]:
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
        else:
            yield text
            text = ""
            yield part
    yield text
