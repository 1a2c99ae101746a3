"""Claude Code: a person's words in prompts, queued prompts, refusals and answers to questions."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from typing import Self

from omcli.base import lazily
from omcli.base.record import positional_record
from omcli.formats.claude_prompts import UserText, is_own_tool, reason_to_refuse, user_text
from omcli.formats.injected import is_block, memory_skips, own_texts
from omcli.formats.source import Record
from omcli.formats.values import attachment_text, image_from_text, image_text, record, string, text
from omcli.memory.message import Image, MessageKind
from omcli.memory.transcript import ReaderState, Skip
from omcli.text.hashes import hash_of, packed_counts, unpacked_counts

_EDITOR_TAGS = ("<ide_opened_file>", "<ide_selection>")
_MEMORY_NOTE = lazily(r"\s*<user-memory-input>(.*?)</user-memory-input>", re.DOTALL)
_ASKED_FOR = frozenset({"Bash", "Edit", "MultiEdit", "NotebookEdit", "Write"})
_REFUSED = ("Error: The user doesn't want to ", "The user doesn't want to ", "User rejected")
_PROGRAM_SPEAKS = lazily(
    r"Exit code|<tool_use_error>|\[|The user |Error|E[A-Z]{3,}\b|Permission|Claude|Command|Request|File |String |Tool |"
    r"Bash |This |Shell |\w*:\w+ hook|cd |No |Cannot|Could not|Failed|Unable|Invalid|Unknown|Interrupted|Timeout"
)
_NOTICES = ("<task-notification", "<agent-notification")
# A slash command, but not a path (`/tmp/x is empty`).
_COMMAND = lazily(r"/[\w:.-]+(?:\s|$)")
# The transcript that a summary continues: its name is the id of its session.
_SUMMARISED = lazily(r"read the full transcript at: [^\n]*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl")
_LONGEST_QUEUE = 256


@positional_record
class UserContent:
    """Content of one user record: a prompt, events, or only injected text."""

    prompt: str
    """Empty if the record has no prompt."""
    images: tuple[Image, ...]
    events: tuple[UserText, ...]
    skips: tuple[Skip, ...]
    is_injected: bool
    """True if a program wrote part of the record."""
    in_editor: bool
    """True if the record contains notes from the VS Code extension."""


def read_content(parts: list[str], images: tuple[Image, ...]) -> UserContent:
    """Separate a person's words from injected text in a record's blocks (see `texts_and_images`)."""
    prompts: list[str] = []
    events: list[UserText] = []
    has_injected = in_editor = False
    for part, own in zip(parts, own_texts(parts), strict=True):
        in_editor = in_editor or any(map(part.__contains__, _EDITOR_TAGS))
        if note := _MEMORY_NOTE.match(part):
            events.append(UserText(text=f"# {note[1].strip()}", kind=MessageKind.COMMAND))
        elif (words := user_text(own)) is None:
            has_injected = True
        elif words.kind is None:
            prompts.append(words.text)
        else:
            events.append(words)
    return UserContent(
        prompt="\n\n".join(prompts),
        images=images,
        events=tuple(events),
        skips=tuple(memory_skips("\n".join(part for part in parts if not is_block(part)))) if prompts else (),
        is_injected=has_injected,
        in_editor=in_editor,
    )


def texts_and_images(content: object) -> tuple[list[str], tuple[Image, ...]]:
    """Return the non-blank text of each block, and the images. Images and documents have placeholders in the text."""
    if isinstance(content, str):
        content = [content]
    parts: list[str] = []
    images: list[Image] = []
    for block in content if isinstance(content, list) else []:
        # Rarely, a list contains a bare string.
        part = block if isinstance(block, str) else ""
        if isinstance(block, dict):
            source = record(block.get("source"))
            encoded = string(source.get("data"))
            media_type = text(source.get("media_type"))
            if block.get("type") == "text":
                part = text(block.get("text"))
            elif block.get("type") == "image":
                image = image_from_text(encoded, media_type or "image") if encoded else None
                images += [image] if image else []
                part = image_text(image) if image else "[image]"
            elif block.get("type") == "document":
                inner, shown = texts_and_images(source.get("content"))
                part = "\n".join([attachment_text("document", block), *inner])
                images += shown
        if part.strip():
            parts.append(part)
    return parts, tuple(images)


def is_injected(entry: Record) -> bool:
    """Return True if a program wrote a record's text, such as a skill, a hook, a notice or a message from another
    agent.
    """
    origin = record(entry.get("origin"))
    return (
        entry.get("isMeta") is True
        or entry.get("isSynthetic") is True
        or entry.get("isVisibleInTranscriptOnly") is True
        or entry.get("promptSource") == "system"
        or text(origin.get("kind")).endswith("notification")
        or "senderTaskId" in origin
    )


def session_before(entry: Record, session: str | None) -> str | None:
    """Return the id of the session that a summary continues, if it names the transcript of a different one."""
    said = texts_and_images(record(entry.get("message")).get("content"))[0] if entry.get("isCompactSummary") else ()
    named = next(filter(None, map(_SUMMARISED.search, said)), None)
    return named[1] if named and named[1] != session else None


def refuse_reason(entry: Record, *, result: str, tool: str | None, in_editor: bool) -> str | None:
    """Return a person's comment on refusing a call, if any, from the record and the text of its failed result."""
    words, sign = reason_to_refuse(result, tool=tool), entry.get("toolUseResult")
    if words and (text(sign).startswith(_REFUSED) if sign is not None else is_own_tool(tool)):
        return words
    # The VS Code extension (2.0.5) writes only the comment in place of the result. In that version, failures of these
    # tools begin with an exit code or a tag. Text that a program may have written does not count as a comment.
    bare = in_editor and tool in _ASKED_FOR and text(entry.get("version")).startswith("2.0.")
    if bare and entry.get("toolUseResult") == f"Error: {result}" and not _PROGRAM_SPEAKS.match(result):
        return result
    return None


def answer_lines(entry: Record) -> str:
    """Return a person's answers to a tool's questions, one `question -> answer` per line, or "" if there are none."""
    lines: list[str] = []
    for question, answer in record(record(entry.get("toolUseResult")).get("answers")).items():
        choices = [choice for choice in answer if isinstance(choice, str)] if isinstance(answer, list) else None
        if words := text(answer).strip() if choices is None else ", ".join(choices):
            lines.append(f"{question} -> {words}")
    return "\n".join(lines)


@positional_record
class WaitingPrompt:
    """A prompt typed while the agent was working: its text or blocks, and the record's timestamp."""

    content: object
    timestamp: object


class PromptQueue:
    """Prompts waiting for the agent.

    A dequeued prompt also has a user record. A popped prompt was returned to the person. A removed prompt was given to
    the agent during its turn. Old versions record it nowhere else. Newer versions also attach it (`queued_command`),
    before or after the removal, so duplicates are dropped.
    """

    def __init__(self) -> None:
        self._waiting: deque[WaitingPrompt] = deque(maxlen=_LONGEST_QUEUE)
        self._removed: Counter[int] = Counter()
        """Number of removals minus attachments of each prompt so far, by hash."""

    @classmethod
    def resume(cls, state: ReaderState) -> Self:
        queue = cls()
        queue._waiting.extend(WaitingPrompt(content, timestamp) for content, timestamp in state["waiting"])
        queue._removed = unpacked_counts(state["removed"])
        return queue

    def state(self) -> ReaderState:
        waiting = [(queued.content, queued.timestamp) for queued in self._waiting]
        return {"waiting": waiting, "removed": packed_counts(self._removed)}

    def operation(self, entry: Record) -> Iterator[WaitingPrompt]:
        """Apply a `queue-operation` record. If it is a removal that gives a prompt to the agent, yield the prompt,
        unless already yielded.
        """
        kind, content = entry.get("operation"), entry.get("content")
        if kind == "enqueue":
            self._waiting.append(WaitingPrompt(content, entry.get("timestamp")))
        elif kind == "popAll":
            self._waiting.clear()
        elif kind in ("dequeue", "remove"):
            queued = self._take(content)
            was_handed_over = entry.get("reason") in (None, "absorbed_mid_turn", "delivered_to_agent")
            if queued is not None and kind == "remove" and was_handed_over and is_prompt(queued.content):
                yield from self._new_prompt(queued, by=1)

    def attachment(self, entry: Record) -> Iterator[WaitingPrompt]:
        """Yield the prompt in an `attachment` record, unless already yielded."""
        attached = record(entry.get("attachment"))
        is_command = attached.get("type") == "queued_command" and not is_injected(attached)
        by_person = is_command and attached.get("commandMode") in (None, "prompt")
        if by_person and is_prompt(attached.get("prompt")):
            yield from self._new_prompt(WaitingPrompt(attached.get("prompt"), entry.get("timestamp")), by=-1)

    def _take(self, content: object) -> WaitingPrompt | None:
        """Remove and return the prompt with this content, or the oldest prompt if `content` is None.

        A prompt that is not in the queue is returned without a timestamp.
        """
        if content is None:
            return self._waiting.popleft() if self._waiting else None
        words = texts_and_images(content)
        for nth, queued in enumerate(self._waiting):
            if texts_and_images(queued.content) == words:
                del self._waiting[nth]
                return queued
        return WaitingPrompt(content, None)

    def _new_prompt(self, queued: WaitingPrompt, *, by: int) -> Iterator[WaitingPrompt]:
        words = hash_of("\n".join(texts_and_images(queued.content)[0]))
        is_known = self._removed[words] * by < 0
        self._removed[words] += by
        if not self._removed[words]:
            del self._removed[words]
        if not is_known:
            yield queued


def is_prompt(content: object) -> bool:
    """Return True if queued content is a person's prompt: neither blank nor a task notice or slash command."""
    parts, _ = texts_and_images(content)
    opening = parts[0].lstrip() if parts else ""
    return bool(opening) and not (opening.startswith(_NOTICES) or _COMMAND.match(opening) or _is_task(opening))


def _is_task(opening: str) -> bool:
    if not (opening.startswith("{") and '"task_id"' in opening):
        return False
    try:
        return isinstance(json.loads(opening), dict)
    except (ValueError, RecursionError):
        return False
