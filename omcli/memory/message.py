"""Messages (the turns and tool events of a session, verbatim), and token counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from omcli.base.record import record

if TYPE_CHECKING:
    from omcli.memory.observation import Observation


class Role(StrEnum):
    USER = "user"
    """A person or, in the messages of a subagent (`Message.agent`), the agent that delegated the work to it."""
    ASSISTANT = "assistant"
    """The agent's visible text, without its thinking."""
    CALL = "call"
    """A tool call: `tool` is its name, `text` its arguments as the producer wrote them (JSON or free text)."""
    RESULT = "result"
    """The result of a tool call. `text` holds the output; `failed` and `exit_code` hold the outcome."""
    EVENT = "event"
    """Another event worth keeping, such as a slash command, an interruption or a compaction (see `MessageKind`)."""


class MessageKind(StrEnum):
    """Kind of a message that is not a plain prompt, reply, call or result. Only notes count (`Message.is_counted`)."""

    QUEUED = "queued"
    """user: typed while the agent was working, and not recorded elsewhere."""
    REMARK = "remark"
    """user: comment on a tool call that the person refused."""
    ANSWER = "answer"
    """user: reply to a question that the agent asked through a tool."""
    NOTE = "note"
    """user: a piece of a daily note."""
    DELEGATED = "delegated"
    """user: instructions from an agent to its subagent."""
    CONTINUED = "continued"
    """assistant: continuation of an earlier reply. The two messages count as one."""
    COMMAND = "command"
    """event: a slash command and its arguments."""
    SHELL = "shell"
    """event: a shell command that the person ran from the prompt."""
    INTERRUPT = "interrupt"
    """event: the person interrupted the agent."""
    COMPACTION = "compaction"
    """event: the context was compacted here. `text` holds the summary if the transcript has one."""
    SUMMARY = "summary"
    """event: a summary of an earlier part. It is stored as a recap if that part is unknown."""
    RECAP = "recap"
    """event: an agent's summary of messages outside this conversation. It is observed, unlike other summaries."""


@record
class Image:
    media_type: str
    size: int
    """Size in bytes."""
    sha256: str
    content: bytes | None = None
    """The image itself, until it is stored. None if it is not to be kept, and in messages read from the store."""


LARGEST_IMAGE = 5_000_000
"""Maximum size of an image, in bytes, that models accept."""


def attachment(kind: str, media_type: str, size: int) -> str:
    """Return the placeholder for an attachment in a message's text. `size` is in bytes."""
    subtype = media_type.rpartition("/")[2]
    shown = f"{size} B" if size < 1024 else f"{size / 1024:.0f} KB" if size < 1 << 20 else f"{size / (1 << 20):.1f} MB"
    return f"[{kind} {subtype} {shown}]"


@record
class Message:
    """One turn or tool event. `text` is verbatim, but without injected context, with placeholders for attachments and,
    in the store, for secrets.
    """

    role: Role
    text: str
    kind: MessageKind | None = None
    id: str | None = None
    """The producer's id, if it is unique within the session."""
    at: str | None = None
    """Instant (`text.instants`), if the producer gives one."""
    utc_offset: int | None = None
    """Minutes east of UTC, if the producer gives them. Used to date words like "yesterday"."""
    name: str | None = None
    """Name of the speaker, if the producer gives one."""
    agent: str | None = None
    """Subagent or side chain the message belongs to, or None for the session's main thread."""
    cwd: str | None = None
    """Working directory, if it differs from the session's."""
    tool: str | None = None
    """calls and results: name of the tool as spelled by the producer (`mcp__server__tool`, `exec_command`)."""
    call_id: str | None = None
    """Links a call to its results, and a remark or an answer to the call it refers to."""
    failed: bool | None = None
    """results and shell commands: True if the call failed, False if it succeeded, None if unknown."""
    exit_code: int | None = None
    """results and shell commands: exit code of the command, if known."""
    images: tuple[Image, ...] = ()

    @property
    def is_counted(self) -> bool:
        """True for messages without a `kind`, except events, and for pieces of daily notes. Only these are counted as
        `messages`.
        """
        return self.role is not Role.EVENT and self.kind in (None, MessageKind.NOTE)


@record
class KeptMessage:
    seq: int
    """Number by order of arrival, across all sessions. Cursors refer to it."""
    session: str
    key: str
    """Printed id: the producer's, or one derived from the content."""
    message: Message
    tokens: int
    counter: str
    """Name of the token counter that computed `tokens`."""


@record
class Incoming:
    message: Message
    identity: str
    """Hash that is unique per message. A message ingested again gets the same identity (`transcript.Identities`)."""
    key: str
    """Printed id."""
    tokens: int
    formerly: str | None = None
    """Another identity under which the message may be stored (`Identities.with_earlier`)."""


def message_fields(kept: KeptMessage, *, text: str | None = None) -> dict[str, object]:
    """Return the fields of a message as all commands print them in JSON, without those that are None. `text` replaces
    the message's text, for example by an excerpt.
    """
    said = kept.message
    fields: dict[str, object] = {
        "id": kept.key,
        "session": kept.session,
        "role": said.role,
        "aside": said.kind,
        "at": said.at,
        "utc_offset": said.utc_offset,
        "name": said.name,
        "agent": said.agent,
        "cwd": said.cwd,
        "tool": said.tool,
        "call_id": said.call_id,
        "failed": said.failed,
        "exit_code": said.exit_code,
        "text": said.text if text is None else text,
        "images": [
            {"media_type": image.media_type, "size": image.size, "sha256": image.sha256} for image in said.images
        ]
        or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def digest(*parts: str | None) -> str:
    """Return a hash of the parts: 32 hex digits.

    None and "" have different hashes, and so do ("ab", "c") and ("a", "bc").
    """
    return digest_of(parts)


def digest_of(parts: Iterable[str | None]) -> str:
    """Return the `digest` of any number of parts."""
    import hashlib  # noqa: PLC0415 - takes 6 ms, and reading a store does not need it

    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = b"\x00" if part is None else part.encode("utf-8", "surrogatepass")
        state.update(len(encoded).to_bytes(8, "big") + encoded)
    return state.hexdigest()


def content_digest(message: Message, *, tool_of_result: bool = False) -> str:
    """Return a digest of the message's role, kind, name, tool, call id, text, agent and images. A result's tool is
    included only with `tool_of_result`, because its name is taken from the call, which may be missing from a partial
    transcript.
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
    """Map the index of each call to the ascending indexes of its results (empty if it has none).

    Producers repeat ids, so a result belongs to the nearest earlier call with its id. If calls in a run share an id,
    each gets one result in order, and the last call gets the rest (if results are missing, the first calls get none).
    From the last to the first, each call without an id gets the last unmatched result without an id after it.
    """
    found: dict[int, tuple[int, ...]] = {}
    twins = _same_before(messages)
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


def _same_before(messages: Sequence[Message]) -> list[int]:
    """Return, for each message, the number of calls with its call id in the run of calls directly before it."""
    together: Counter[str | None] = Counter()
    found: list[int] = []
    for message in messages:
        if message.role is not Role.CALL:
            together.clear()
        found.append(together[message.call_id])
        together[message.call_id] += message.role is Role.CALL
    return found


# ---- tokens of messages and rows

UNLIMITED = 1_000_000_000
"""More tokens than any tier, session or batch contains. Used to mean no limit."""


class TokenCounter(Protocol):
    """A way to count tokens. Numbers from different counters are never added."""

    @property
    def name(self) -> str:
        """Name stored with every count."""

    @property
    def free_share(self) -> float:
        """Share of a budget that is kept free because counts may be too low."""

    def text(self, text: str) -> int:
        """Return the number of tokens in the text."""

    def message(self, message: Message) -> int:
        """Return the number of tokens in a message, including the counter's overhead per message and image."""

    def conversation(self, messages: Iterable[Message]) -> int:
        """Return the number of tokens in a transcript, including the counter's fixed overhead."""

    def remembering(self) -> TokenCounter:
        """Return a counter that gives the same results but may cache lines, for counting many similar texts."""


def row_tokens(row: Observation, counter: TokenCounter) -> int:
    """Return the number of tokens in the row's text. Count them if the stored number is from another counter."""
    return row.tokens if row.counter == counter.name else counter.text(row.text)


def rows_tokens(rows: Iterable[Observation], counter: TokenCounter) -> int:
    return sum(row_tokens(row, counter) for row in rows)


def message_tokens(kept: KeptMessage, counter: TokenCounter) -> int:
    """Return the number of tokens in the message. Count them if the stored number is from another counter."""
    return kept.tokens if kept.counter == counter.name else counter.message(kept.message)


def reaches(tokens: int, threshold: int, *, inclusive: bool) -> bool:
    """Return True if `tokens` exceeds the threshold or, if `inclusive`, equals it."""
    return tokens > threshold or (inclusive and tokens == threshold)
