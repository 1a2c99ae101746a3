"""OpenCode: sessions as `opencode export` writes them, and as `database` reads them from its database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from omcli.formats import Format, TranscriptFolders, by_record
from omcli.formats.injected import memory_skips, own_words, without_injected
from omcli.formats.source import InputShape, Record, Sample, with_speaker
from omcli.formats.values import (
    compact_json,
    data_in,
    exit_code,
    image_from_text,
    image_text,
    objects,
    record,
    string,
    text,
)
from omcli.memory.message import Image, Message, MessageKind, Role
from omcli.memory.transcript import Facts, Item, ReaderState, Reason, Skip
from omcli.text.instants import instant

_UNTITLED = ("New session - ", "Child session - ")
"""Beginnings of the titles that sessions have until a model has named them."""
_NOISE_PARTS = frozenset(
    {"reasoning", "step-start", "step-finish", "patch", "snapshot", "agent", "subtask", "retry", "file"}
)
_ENDED = {"completed": False, "success": False, "error": True}
"""States of a call that has a result. The value is True for a failure."""
_BY_PERSON = "The following tool was executed by the user"
"""Text of the message before a command that a person ran with `!`."""


def _is_session(entry: Record) -> bool:
    info = record(entry.get("info"))
    return isinstance(entry.get("messages"), list) and "id" in info and "role" not in info


def detect(sample: Sample) -> bool:
    """Return True if each record is a session with its messages."""
    is_json = sample.shape in (InputShape.LINES, InputShape.DOCUMENT)
    return is_json and bool(sample.records) and all(map(_is_own_record, sample.records))


def _is_own_record(entry: Record) -> bool:
    messages = objects(entry.get("messages"))[:20]
    is_of_info = all("info" in message and "parts" in message for message in messages)
    return _is_session(entry) and is_of_info and ("directory" in record(entry["info"]) or bool(messages))


class _RecordReader:
    """Reads whole sessions, which are written again whenever they change."""

    def __init__(self, state: ReaderState | None) -> None:
        del state  # each record is a session of its own

    def state(self) -> ReaderState:
        return {}

    def end(self) -> Iterator[Item]:
        """Yield nothing, because no item is ever held back."""
        return iter(())

    def items(self, entry: Record) -> Iterator[Item]:
        messages = entry.get("messages")
        if not _is_session(entry) or not isinstance(messages, list):
            yield Skip(Reason.MALFORMED, "info")
            return
        session = _Session(record(entry["info"]))
        yield session.facts
        answers = [nth for nth, message in enumerate(messages) if _role(message) == "assistant"]
        for nth, message in enumerate(messages):
            if isinstance(message, dict):
                items = session.items(message, is_followed=bool(answers) and nth < answers[-1])
                yield from map(partial(with_speaker, entry=record(message.get("info"))), items)
            else:
                yield Skip(Reason.NOT_AN_OBJECT)


def _role(message: object) -> str:
    return text(record(record(message).get("info")).get("role"))


class _Session:
    """The messages of one session, read one after the other."""

    def __init__(self, info: Record) -> None:
        title, parent = text(info.get("title")), text(info.get("parentID"))
        self.facts = Facts(
            session=string(info.get("id")),
            cwd=string(info.get("directory")),
            title=None if title.startswith(_UNTITLED) else title or None,
            parent=parent if parent != "REDACTED" else None,  # some exports hide it
        )
        self._delegated = MessageKind.DELEGATED if parent else None
        self._model: str | None = None
        self._is_by_person = False
        """True after a message that introduces a person's own command."""

    def items(self, message: Record, *, is_followed: bool) -> Iterator[Item]:
        """Yield the items of a message. A message that `is_followed` by another answer cannot change."""
        info, parts = record(message.get("info")), objects(message.get("parts"))
        role, times = text(info.get("role")), record(info.get("time"))
        cwd = string(record(info.get("path")).get("cwd"))
        said = partial(Message, at=instant(times.get("created")), cwd=cwd if cwd != self.facts.cwd else None)
        found: list[Item] = []
        if role == "user":
            found += self._prompt(info, parts, said)
        elif role == "assistant":
            is_over = is_followed or any(map(info.get, ("finish", "error"))) or "completed" in times
            found += self._model_fact(info)
            found += self._answer(info, parts, said, is_over=is_over)
        else:
            found.append(Skip(Reason.UNKNOWN_TYPE if role else Reason.MALFORMED, role[:40] or "info"))
        yield from found or [Skip(Reason.NOISE)]

    def _model_fact(self, info: Record) -> Iterator[Facts]:
        model = string(info.get("modelID")) or string(record(info.get("model")).get("modelID"))
        if model and model != self._model:
            self._model = model
            yield Facts(model=model)

    def _prompt(self, info: Record, parts: Sequence[Record], said: partial[Message]) -> Iterator[Item]:
        """Yield a person's words, and a compaction that they or the program asked for."""
        own = string(info.get("id"))
        texts = [part for part in parts if part.get("type") == "text"]
        added = [text(part.get("text")) for part in texts if part.get("synthetic") or part.get("ignored")]
        typed = [text(part.get("text")) for part in texts if not (part.get("synthetic") or part.get("ignored"))]
        self._is_by_person = any(words.startswith(_BY_PERSON) for words in added)
        yield from _other_parts(parts, said)
        words = own_words("\n\n".join(typed)).strip()
        if not words:
            yield from [Skip(Reason.INJECTED)] if texts else []
            return
        yield from memory_skips("\n\n".join(typed))
        shown, images = _files(parts)
        words = "\n".join((words, *shown))
        yield said(role=Role.USER, text=words, kind=self._delegated, id=own, images=tuple(images))

    def _answer(
        self, info: Record, parts: Sequence[Record], said: partial[Message], *, is_over: bool
    ) -> Iterator[Item]:
        """Yield texts, calls and results in order. A text or call that may still grow is left for the next reading."""
        own, is_first = string(info.get("id")), True
        yield from _other_parts(parts, said)
        for part in parts:
            kind, times = part.get("type"), record(part.get("time"))
            if kind == "tool":
                yield from self._call(part, said, is_over=is_over)
            elif kind == "text" and text(part.get("text")).strip():
                words = text(part["text"])
                if part.get("synthetic") or part.get("ignored"):
                    yield Skip(Reason.INJECTED)
                elif not is_over and "time" in part and "end" not in times:
                    yield Skip(Reason.TRUNCATED)
                elif info.get("summary") is True:
                    yield said(role=Role.EVENT, text=without_injected(words), kind=MessageKind.SUMMARY, id=own)
                else:
                    at = instant(times.get("start")) or said.keywords["at"]
                    continued = None if is_first else MessageKind.CONTINUED
                    own_id = own if is_first else string(part.get("id"))
                    yield said(role=Role.ASSISTANT, text=words, kind=continued, id=own_id, at=at)
                    is_first = False

    def _call(self, part: Record, said: partial[Message], *, is_over: bool) -> Iterator[Item]:
        tool, call_id, state = string(part.get("tool")), string(part.get("callID")), record(part.get("state"))
        status, times = text(state.get("status")), record(state.get("time"))
        if tool is None:
            yield Skip(Reason.MALFORMED, "tool")
            return
        if status not in _ENDED and not is_over:
            yield Skip(Reason.TRUNCATED)
            return
        given, began = record(state.get("input")), instant(times.get("start")) or said.keywords["at"]
        outcome = partial(said, at=instant(times.get("end")) or began, **_outcome(state, status))
        if self._is_by_person:
            shown = "\n".join(filter(None, (text(given.get("command")), text(state.get("output")))))
            yield outcome(role=Role.EVENT, text=shown, kind=MessageKind.SHELL, id=call_id)
            return
        said = partial(said, tool=tool, call_id=call_id)
        yield said(role=Role.CALL, text=compact_json(given), id=call_id, at=began)
        if status in _ENDED:
            printed = without_injected(text(state.get("output")) or text(state.get("error")))
            own = call_id and f"{call_id}:result"
            yield outcome(role=Role.RESULT, text=printed, id=own, tool=tool, call_id=call_id)
            if words := _answered(given, state):
                own = call_id and f"{call_id}:answer"
                yield outcome(
                    role=Role.USER, text=words, kind=MessageKind.ANSWER, id=own, call_id=call_id,
                    failed=None, exit_code=None,
                )  # fmt: skip


def _outcome(state: Record, status: str) -> dict[str, object]:
    """Return the fields `failed` (None if the call has not ended) and `exit_code` of a call. OpenCode also marks a
    failed command as completed, so an exit code other than 0 counts as a failure.
    """
    code = exit_code(record(state.get("metadata")).get("exit"))
    return {"failed": (_ENDED[status] or bool(code)) if status in _ENDED else None, "exit_code": code}


def _answered(given: Record, state: Record) -> str:
    """Return a person's answers to a tool's questions, one `question -> answer` per line, or "" if there are none."""
    answers = record(state.get("metadata")).get("answers")
    lines: list[str] = []
    given_answers = answers if isinstance(answers, list) else ()
    for question, answer in zip(objects(given.get("questions")), given_answers, strict=False):
        chosen = [text(choice) for choice in answer] if isinstance(answer, list) else [text(answer)]
        if words := ", ".join(filter(None, chosen)):
            lines.append(f"{text(question.get('question'))} -> {words}")
    return "\n".join(lines)


def _other_parts(parts: Sequence[Record], said: partial[Message]) -> Iterator[Item]:
    """Yield an event for each compaction, and a `Skip` for each part of an unknown type."""
    for part in parts:
        kind = text(part.get("type"))
        if kind == "compaction":
            yield said(role=Role.EVENT, text="", kind=MessageKind.COMPACTION, id=string(part.get("id")))
        elif kind not in _NOISE_PARTS and kind not in ("text", "tool"):
            yield Skip(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40])


def _files(parts: Sequence[Record]) -> tuple[list[str], list[Image]]:
    """Return the placeholders of attached files, and the images among them."""
    shown: list[str] = []
    images: list[Image] = []
    for part in parts:
        if part.get("type") == "file":
            data = data_in(text(part.get("url")))
            if data and data[1].startswith("image"):
                images.append(image_from_text(*data))
                shown.append(image_text(images[-1]))
            else:
                shown.append(f"[file {text(part.get('filename')) or 'unnamed'}]")
    return shown, images


FORMAT = Format(
    name="opencode",
    title="OpenCode",
    detect=detect,
    read=by_record(_RecordReader),
    folders=TranscriptFolders(homes=("~/.local/share",), patterns=("opencode/opencode*.db",), variable="XDG_DATA_HOME"),
)
