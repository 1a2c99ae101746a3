"""A message: one turn or tool event of a session, verbatim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from omcli.base.record import record


class Role(StrEnum):
    """Who or what a message is from."""

    USER = "user"
    """Words of a person, or of the parent agent where `agent` is set."""
    ASSISTANT = "assistant"
    """Visible text of the agent; thinking is left out."""
    CALL = "call"
    """A tool call: `tool` is the name, `text` its arguments as the producer wrote them (JSON, or free text)."""
    RESULT = "result"
    """What a tool answered: `text` is its output, `failed` and `exit_code` its outcome."""
    EVENT = "event"
    """Something else that happened and is worth keeping: a slash command, an interruption, a compaction."""


class MessageKind(StrEnum):
    """Kind of an uncommon message. Plain prompts, replies, calls and results have none.

    The user's asides are words of a person that stand where no prompt does; they are kept, but not counted as prompts.
    """

    QUEUED = "queued"
    """user: typed while the agent worked and written nowhere else."""
    REMARK = "remark"
    """user: said while refusing a tool call."""
    ANSWER = "answer"
    """user: given to a question the agent asked through a tool."""
    NOTE = "note"
    """user: a piece of a note somebody wrote down, said to nobody."""
    DELEGATED = "delegated"
    """user: what an agent wrote for its subagent."""
    CONTINUED = "continued"
    """assistant: more of an answer whose beginning is a message already; the two count as one."""
    COMMAND = "command"
    """event: a slash command and its arguments."""
    SHELL = "shell"
    """event: a shell command the person ran from the prompt."""
    INTERRUPT = "interrupt"
    """event: the person stopped the agent."""
    COMPACTION = "compaction"
    """event: the context was compacted here; `text` holds the summary where the transcript has one."""
    SUMMARY = "summary"
    """event: a summary of an earlier part that the transcript carries along."""


@record
class Image:
    """An image that was part of a message."""

    media_type: str
    size: int
    """Bytes."""
    sha256: str
    content: bytes | None = None
    """Its bytes, on the way into the store: there they wait for a model that takes images, and go when it has seen
    them. None where nobody wants them, and always in what is read from the store."""


LARGEST_IMAGE = 5_000_000
"""Bytes of an image that models take."""


def attachment(kind: str, media_type: str, size: int) -> str:
    """What stands in the text where something was attached. Size in bytes, shown in units of 1024."""
    subtype = media_type.rpartition("/")[2]
    shown = f"{size} B" if size < 1024 else f"{size / 1024:.0f} KB" if size < 1 << 20 else f"{size / (1 << 20):.1f} MB"
    return f"[{kind} {subtype} {shown}]"


@record
class Message:
    """One turn or tool event. `text` is what was said or written, verbatim but for secrets and injected context."""

    role: Role
    text: str
    kind: MessageKind | None = None
    id: str | None = None
    """The producer's own id, where it gives one that tells messages of a session apart."""
    at: str | None = None
    """When, as an instant (`dates`), where the producer says so."""
    utc_offset: int | None = None
    """Minutes east of UTC where it was said, where the producer says so: which day "yesterday" was."""
    name: str | None = None
    """The speaker, where several share a role."""
    agent: str | None = None
    """The subagent or side chain this belongs to; None for the session's main thread."""
    cwd: str | None = None
    """The working directory, where it differs from the session's."""
    tool: str | None = None
    """calls and results: the tool's name as the producer spells it (`mcp__server__tool`, `exec_command`)."""
    call_id: str | None = None
    """calls and results: joins the two; remarks and replies to questions: the call they are about."""
    failed: bool | None = None
    """results: True failed, False succeeded, None where the transcript does not tell."""
    exit_code: int | None = None
    """results: the exit code of the command, where one is given."""
    images: tuple[Image, ...] = ()

    @property
    def is_counted(self) -> bool:
        """Whether this is a prompt, an answer, a call, a result or a note: what `messages` counts everywhere."""
        return self.role is not Role.EVENT and self.kind in (None, MessageKind.NOTE)


@record
class KeptMessage:
    """A message with its place in the store."""

    seq: int
    """Order of arrival, over all sessions: what cursors hold."""
    session: str
    key: str
    """The message's id in print: the producer's, or one derived from its content."""
    message: Message
    tokens: int
    counter: str
    """The token counter that `tokens` is stated in."""


def digest(*parts: str | None) -> str:
    """32 hex digits over parts; absent and empty parts differ, and parts never run into each other."""
    import hashlib  # noqa: PLC0415 - 6 ms that reading a store need not pay

    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = b"\x00" if part is None else part.encode("utf-8", "surrogatepass")
        state.update(len(encoded).to_bytes(8, "big") + encoded)
    return state.hexdigest()


def content_digest(message: Message, *, tool_of_result: bool = False) -> str:
    """What a message says and does, without who recorded it where and when: the basis of its identity.

    `tool_of_result` counts a result's tool as well. It is learnt from the call, which a piece of a transcript need not
    have.
    """
    return digest(
        message.role,
        message.kind,
        message.name,
        message.tool if tool_of_result or message.role is not Role.RESULT else None,
        message.call_id,
        message.text,
        message.agent,
        *(image.sha256 for image in message.images),
    )


def results_by_call(messages: Sequence[Message]) -> dict[int, tuple[int, ...]]:
    """For the place of every call, the places of its results, ascending; none for a call nobody answered.

    Producers repeat ids, so a result belongs to the nearest call before it; of calls that were made together under one
    id each has the next result, and the last one those that are left. Without an id it belongs to the nearest that
    has none either and no result yet.
    """
    found: dict[int, tuple[int, ...]] = {}
    twins = _twins(messages)
    waiting: dict[str | None, list[int]] = {}
    for place in reversed(range(len(messages))):
        message = messages[place]
        if message.role is Role.RESULT:
            waiting.setdefault(message.call_id, []).append(place)
        elif message.role is Role.CALL:
            results = waiting.get(message.call_id, [])
            taken = 1 if message.call_id is None else max(1, len(results) - twins[place])
            found[place] = tuple(sorted(results[:taken]))
            del results[:taken]
    return found


def _twins(messages: Sequence[Message]) -> list[int]:
    """For every place how many calls of its id were made right before it, with nothing but calls between."""
    together: Counter[str | None] = Counter()
    found: list[int] = []
    for message in messages:
        if message.role is not Role.CALL:
            together.clear()
        found.append(together[message.call_id])
        together[message.call_id] += message.role is Role.CALL
    return found
