"""Claude Code: where a person speaks - in prompts, beside results, in queues, refusals and answers to questions."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from typing import Self

from omcli.base.patterns import lazily
from omcli.base.record import positional_record
from omcli.formats.claude_prompts import Said, rejection_remark, said
from omcli.formats.source import Record
from omcli.formats.values import image_of_base64, placeholder, record, string, text
from omcli.memory.message import Aside, Image, attachment
from omcli.memory.transcript import Carried
from omcli.text.hashes import hashed, packed_counts, unpacked_counts

_EDITOR_TAGS = ("<ide_opened_file>", "<ide_selection>")
_MEMORY_NOTE = lazily(r"\s*<user-memory-input>(.*?)</user-memory-input>", re.DOTALL)
_ASKED_FOR = frozenset({"Bash", "Edit", "MultiEdit", "NotebookEdit", "Write"})
_PROGRAM_SPEAKS = lazily(
    r"Exit code|<tool_use_error>|\[|The user |Error|E[A-Z]{3,}\b|Permission|Claude|Command|Request|File |String |Tool |"
    r"Bash |This |Shell |\w*:\w+ hook|cd |No |Cannot|Could not|Failed|Unable|Invalid|Unknown|Interrupted|Timeout"
)
_NOTICES = ("<task-notification", "<agent-notification")
# A path is no slash command: `/tmp/x is empty`.
_COMMAND = lazily(r"/[\w:.-]+(?:\s|$)")
_LONGEST_QUEUE = 256


@positional_record
class Heard:
    """What one record of the user's role says: a prompt, or events, or nothing of a person at all."""

    prompt: str
    """Empty where there is none."""
    images: tuple[Image, ...]
    events: tuple[Said, ...]
    is_injected: bool
    """Some of it was put there by a program."""
    in_editor: bool
    """It carries the notes of the VS Code extension."""


def heard(content: object) -> Heard:
    """Tells a person's words from what programs put beside them. Takes a text or a list of blocks."""
    parts, images = spread(content)
    told = [_said(part) for part in parts]
    return Heard(
        prompt="\n\n".join(one.text for one in told if one is not None and one.aside is None),
        images=images,
        events=tuple(one for one in told if one is not None and one.aside is not None),
        is_injected=None in told,
        in_editor=any(tag in part for part in parts for tag in _EDITOR_TAGS),
    )


def spread(content: object) -> tuple[list[str], tuple[Image, ...]]:
    """The texts of a content in order, blank ones left out, images and documents as placeholders; and the images."""
    if isinstance(content, str):
        content = [content]
    parts: list[str] = []
    images: list[Image] = []
    for block in content if isinstance(content, list) else []:
        # Very rarely a list holds a bare text.
        part = block if isinstance(block, str) else ""
        if isinstance(block, dict):
            source = record(block.get("source"))
            encoded = string(source.get("data"))
            media_type = text(source.get("media_type"))
            if block.get("type") == "text":
                part = text(block.get("text"))
            elif block.get("type") == "image":
                image = image_of_base64(encoded, media_type or "image") if encoded else None
                images += [image] if image else []
                part = placeholder(image) if image else "[image]"
            elif block.get("type") == "document":
                part = attachment("document", media_type, len(encoded or "") * 3 // 4)
        if part.strip():
            parts.append(part)
    return parts, tuple(images)


def _said(part: str) -> Said | None:
    if note := _MEMORY_NOTE.match(part):
        return Said(f"# {note[1].strip()}", Aside.COMMAND)
    return said(part)


def is_by_program(entry: Record) -> bool:
    """Whether a record says that no person wrote its text: skills, hooks, notices, messages of other agents."""
    origin = record(entry.get("origin"))
    return (
        entry.get("isMeta") is True
        or entry.get("isSynthetic") is True
        or entry.get("isVisibleInTranscriptOnly") is True
        or entry.get("promptSource") == "system"
        or text(origin.get("kind")).endswith("notification")
        or "senderTaskId" in origin
    )


def remark(entry: Record, *, result: str, tool: str | None, in_editor: bool) -> str | None:
    """What a person said while refusing a call, from the record and the text of its failed result."""
    if words := rejection_remark(result):
        return words
    # The VS Code extension (2.0.5) puts the bare words in place of the result. Failures of these tools begin with an
    # exit code or a tag by then; the wordings that don't are left alone: nothing is put into a person's mouth.
    bare = in_editor and tool in _ASKED_FOR and text(entry.get("version")).startswith("2.0.")
    if bare and entry.get("toolUseResult") == f"Error: {result}" and not _PROGRAM_SPEAKS.match(result):
        return result
    return None


def answers(entry: Record) -> str:
    """A person's answers to the questions of a tool, one `question -> answer` per line; empty where there are none."""
    given = record(record(entry.get("toolUseResult")).get("answers"))
    return "\n".join(f"{question} -> {words}" for question, answer in given.items() if (words := _joined(answer)))


def _joined(answer: object) -> str:
    if isinstance(answer, list):
        return ", ".join(choice for choice in answer if isinstance(choice, str))
    return text(answer).strip()


@positional_record
class Queued:
    """A prompt typed while the agent worked: a text or blocks, and when, as the record has it."""

    content: object
    timestamp: object


class Queue:
    """Prompts waiting their turn.

    A prompt that leaves the queue by `dequeue` follows as a user record, one that is popped went back to the person;
    but one that is removed was handed to the agent in the middle of its turn, and the oldest builds write it nowhere
    else. Newer ones attach it too (`queued_command`), before or after: the same words then come once.
    """

    def __init__(self) -> None:
        self._waiting: deque[Queued] = deque(maxlen=_LONGEST_QUEUE)
        self._removed: Counter[int] = Counter()
        """How often words were told by a removal more than by an attachment, by hash."""

    @classmethod
    def going_on(cls, carried: Carried) -> Self:
        """One that goes on where another one carried this from."""
        queue = cls()
        queue._waiting.extend(Queued(content, timestamp) for content, timestamp in carried["waiting"])
        queue._removed = unpacked_counts(carried["removed"])
        return queue

    def carried(self) -> Carried:
        """What it knows, as JSON."""
        waiting = [(queued.content, queued.timestamp) for queued in self._waiting]
        return {"waiting": waiting, "removed": packed_counts(self._removed)}

    def operation(self, entry: Record) -> Iterator[Queued]:
        """Takes a `queue-operation` record; yields a prompt that is now the agent's and was not told before."""
        kind, content = entry.get("operation"), entry.get("content")
        if kind == "enqueue":
            self._waiting.append(Queued(content, entry.get("timestamp")))
        elif kind == "popAll":
            self._waiting.clear()
        elif kind in ("dequeue", "remove"):
            queued = self._take(content)
            was_handed_over = entry.get("reason") in (None, "absorbed_mid_turn", "delivered_to_agent")
            if queued is not None and kind == "remove" and was_handed_over and is_prompt(queued.content):
                yield from self._told_once(queued, by=1)

    def attached(self, entry: Record) -> Iterator[Queued]:
        """Takes an `attachment` record; yields the prompt in it, where there is one that was not told before."""
        attached = record(entry.get("attachment"))
        is_command = attached.get("type") == "queued_command" and not is_by_program(attached)
        by_person = is_command and attached.get("commandMode") in (None, "prompt")
        if by_person and is_prompt(attached.get("prompt")):
            yield from self._told_once(Queued(attached.get("prompt"), entry.get("timestamp")), by=-1)

    def _take(self, content: object) -> Queued | None:
        """The queue's entry with this content, else the oldest where the record gives none."""
        if content is None:
            return self._waiting.popleft() if self._waiting else None
        words = spread(content)
        nth = next((nth for nth, queued in enumerate(self._waiting) if spread(queued.content) == words), None)
        if nth is None:
            return Queued(content, None)
        queued = self._waiting[nth]
        del self._waiting[nth]
        return queued

    def _told_once(self, queued: Queued, *, by: int) -> Iterator[Queued]:
        words = hashed("\n".join(spread(queued.content)[0]))
        told_before = self._removed[words] * by < 0
        self._removed[words] += by
        if not self._removed[words]:
            del self._removed[words]
        if not told_before:
            yield queued


def is_prompt(content: object) -> bool:
    """Whether a queued content is a person's prompt: not a notice of a task, not a slash command."""
    parts, _ = spread(content)
    opening = next((part.lstrip() for part in parts), "")
    return bool(opening) and not (opening.startswith(_NOTICES) or _COMMAND.match(opening) or _is_task(opening))


def _is_task(opening: str) -> bool:
    if not (opening.startswith("{") and '"task_id"' in opening):
        return False
    try:
        return isinstance(json.loads(opening), dict)
    except (ValueError, RecursionError):
        return False
