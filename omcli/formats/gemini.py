"""Gemini CLI: session files, one JSON document or, since version 0.40, JSON Lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from omcli.base import lazily
from omcli.base.record import positional_record
from omcli.formats import Format, TranscriptFolders, by_record
from omcli.formats.injected import memory_skips, own_words, without_injected
from omcli.formats.source import InputShape, Record, Sample, with_speaker
from omcli.formats.values import compact_json, exit_code, image_from_text, image_text, objects, record, string, text
from omcli.memory.message import Image, Message, MessageKind, Role
from omcli.memory.transcript import Abandoned, Facts, Item, ReaderState, Reason, Skip
from omcli.text.hashes import HashSet, hash_of, packed, unpacked
from omcli.text.instants import instant

# Beginnings of text that the client writes in the user's role.
_WRITTEN_BY_CLIENT = (
    "System: Please continue.",
    "<session_context>",
    "This is the Gemini CLI. We are setting up the context for our chat",
)
_FILES = lazily(r"(?:\A|\n)--- Content from referenced files ---")
"""Line between a prompt and the content of the files that it names with `@`."""
_NOTICES = frozenset({"info", "warning", "error"})
_SHELL = "run_shell_command"
_SHELL_HEADER = lazily(r"(?:Command: .*?\nDirectory: [^\n]*\n)?(?:Output|Stdout): ", re.DOTALL)
_SHELL_FOOTER = (
    "Error: (none)",
    "Stderr: (empty)",
    "Exit Code: ",
    "Signal: ",
    "Background PIDs: ",
    "Process Group PGID: ",
)
_EXIT_CODE = lazily(
    r"(?:\n|\\n)Exit Code: (-?\d{1,9})"
    r"(?=(?:(?:\n|\\n)(?:Signal|Background PIDs|Process Group PGID): [^\n\\]*)*\s*(?:\\n)?\Z)"
)
_FOOTER = 500
"""Number of characters at the end of a command's output that may be its footer."""
_FAILED = {"error": True, "cancelled": True, "success": False}
_OF_ANSWERS = frozenset({"tokens", "thoughts", "toolCalls"})
_MARKS = frozenset({"projectHash", "$set", "$rewindTo"})


def _is_own_record(entry: Record) -> bool:
    return not _MARKS.isdisjoint(entry) or (entry.get("type") == "gemini" and not _OF_ANSWERS.isdisjoint(entry))


def detect(sample: Sample) -> bool:
    """Return True if a record is a session's header, a change of it, or an answer with tokens, thoughts or calls."""
    is_json = sample.shape is InputShape.LINES or (sample.shape is InputShape.DOCUMENT and not sample.is_list)
    return is_json and any(map(_is_own_record, sample.records))


@positional_record
class _Said:
    """The last answer: its id, its text, and the number of messages made from it."""

    id: str = ""
    text: str = ""
    parts: int = 0


class _RecordReader:
    """Reads a session. In JSON Lines, a message with new calls or more text is written again, with the same id."""

    def __init__(self, state: ReaderState | None) -> None:
        state = state or {}
        self._delegated = MessageKind.DELEGATED if state.get("delegated") else None
        """Kind of the prompts of a subagent's session."""
        self._model: str | None = state.get("model")
        self._seen = HashSet(unpacked(state["seen"]) if state else ())
        self._said = _Said(*state.get("said", ()))
        self._ids: list[str] = []
        """Ids of the messages read, in order, without those that were read before this reader resumed."""

    def state(self) -> ReaderState:
        said = (self._said.id, self._said.text, self._said.parts)
        return {
            "delegated": self._delegated is not None,
            "model": self._model,
            "seen": packed(self._seen),
            "said": said,
        }

    def end(self) -> Iterator[Item]:
        """Yield nothing, because no item is ever held back."""
        return iter(())

    def items(self, entry: Record) -> Iterator[Item]:
        if "sessionId" in entry and "type" not in entry:
            yield from self._header(entry)
        elif "$set" in entry:
            yield from self._header(record(entry["$set"]))
        elif rewound := string(entry.get("$rewindTo")):
            yield self._taken_back(rewound)
        else:
            yield from self._message(entry)

    def _header(self, entry: Record) -> Iterator[Item]:
        """Yield the facts of a session or of a change of it, and its messages if it has them."""
        if entry.get("kind") == "subagent":
            self._delegated = MessageKind.DELEGATED
        session, title = string(entry.get("sessionId")), string(entry.get("summary"))
        if session or title:
            yield Facts(session=session, title=title)
        messages = entry.get("messages")
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict):
                yield from map(partial(with_speaker, entry=message), self._message(message))
            else:
                yield Skip(Reason.NOT_AN_OBJECT)
        if not isinstance(messages, list) or not messages:
            yield Skip(Reason.NOISE)

    def _taken_back(self, rewound: str) -> Item:
        """Remove from `_ids` and return the messages that a person took back: the one with this id, and all after it.

        If it was not read, there are none.
        """
        place = self._ids.index(rewound) if rewound in self._ids else len(self._ids)
        abandoned, self._ids = self._ids[place:], self._ids[:place]
        return Abandoned(ids=frozenset(abandoned))

    def _message(self, entry: Record) -> Iterator[Item]:
        kind = text(entry.get("type"))
        if kind == "gemini":
            yield from self._answer(entry)
        elif kind == "user":
            yield from self._prompt(entry)
        elif kind in _NOTICES:
            yield Skip(Reason.NOISE)
        else:
            yield Skip(Reason.UNKNOWN_TYPE if kind else Reason.MALFORMED, kind[:40])

    def _prompt(self, entry: Record) -> Iterator[Item]:
        content, own = entry.get("content"), string(entry.get("id"))
        if not isinstance(content, str | list):
            yield Skip(Reason.MALFORMED, "user")
            return
        said, images = _content(content)
        shown = _content(entry.get("displayContent"))[0].strip()
        written = shown or _FILES.split(said, maxsplit=1)[0]
        words = own_words(written).strip()
        if not words or words.startswith(_WRITTEN_BY_CLIENT):
            yield Skip(Reason.INJECTED)
            return
        if own and self._is_repeated("prompt", own, words):
            yield Skip(Reason.REPEATED)
            return
        at = instant(entry.get("timestamp"))
        self._ids += [own] if own else []
        if shown.startswith("/"):  # the text is what the command stands for
            yield Message(role=Role.EVENT, text=words, kind=MessageKind.COMMAND, id=own, at=at)
        else:
            yield from memory_skips(written)
            yield Message(role=Role.USER, text=words, kind=self._delegated, id=own, at=at, images=images)

    def _answer(self, entry: Record) -> Iterator[Item]:
        """Yield the model if it changed, the visible text, and the calls with their results."""
        model, at, own = string(entry.get("model")), instant(entry.get("timestamp")), string(entry.get("id"))
        if model and model != self._model:
            self._model = model
            yield Facts(model=model)
        said = _content(entry.get("content"))[0]
        found: list[Item] = [*self._text(said, own, at)] if said.strip() else []
        for call in objects(entry.get("toolCalls")):
            found += self._call(call, at)
        yield from found or [Skip(Reason.NOISE)]

    def _text(self, said: str, own: str | None, at: str | None) -> Iterator[Item]:
        """Yield an answer. If it continues the last one, with the same id, only the new text becomes a message, because
        a stored message stays as it is.
        """
        if own is None:
            yield Message(role=Role.ASSISTANT, text=said, at=at)
            return
        if self._is_repeated("text", own, said):
            yield Skip(Reason.REPEATED)
            return
        before = self._said if self._said.id == own else _Said(own)
        self._said = _Said(own, said, before.parts + 1)
        if not before.parts:
            self._ids.append(own)
            yield Message(role=Role.ASSISTANT, text=said, id=own, at=at)
            return
        new = said.removeprefix(before.text) if said.startswith(before.text) else said
        kind = MessageKind.CONTINUED
        yield Message(role=Role.ASSISTANT, text=new.strip(), kind=kind, id=f"{own}~{before.parts + 1}", at=at)

    def _call(self, call: Record, at: str | None) -> Iterator[Item]:
        """Yield a call, and its result once it has one. A call has the time of its message, which never changes."""
        tool, call_id = string(call.get("name")), string(call.get("id"))
        if tool is None:
            yield Skip(Reason.MALFORMED, "toolCalls")
            return
        if call_id and self._is_repeated("call", call_id):
            yield Skip(Reason.REPEATED)
        else:
            self._ids += [call_id] if call_id else []
            arguments = compact_json(call.get("args") or {})
            yield Message(role=Role.CALL, text=arguments, id=call_id, at=at, tool=tool, call_id=call_id)
        status = text(call.get("status"))
        if ("result" not in call and status not in _FAILED) or (call_id and self._is_repeated("result", call_id)):
            return
        yield _result(call, tool, call_id, instant(call.get("timestamp")) or at)

    def _is_repeated(self, kind: str, *parts: str) -> bool:
        return not self._seen.add(hash_of(kind, *parts))


def _result(call: Record, tool: str, call_id: str | None, at: str | None) -> Message:
    said, code, failed = _output(call), None, _FAILED.get(text(call.get("status")))
    if tool == _SHELL:  # the status only says that a command could be started
        exited = _EXIT_CODE.search(said, max(0, len(said) - _FOOTER))
        code = exit_code(exited[1]) if exited else None
        failed = failed or bool(code) if failed is not None or code is not None else None
        said = _printed(said)
    return Message(
        role=Role.RESULT,
        text=without_injected(said),
        id=call_id and f"{call_id}:result",
        at=at,
        tool=tool,
        call_id=call_id,
        failed=failed,
        exit_code=code,
    )


def _output(call: Record) -> str:
    """Return a tool's output for the model or, if that is missing, its output for the person."""
    parts: list[str] = []
    for part in objects(call.get("result")):
        response = record(record(part.get("functionResponse")).get("response"))
        given = response.get("output", response.get("error", response or None))
        parts.append(text(part.get("text")) if given is None else compact_json(given))
    return "\n".join(filter(None, parts)) or text(call.get("resultDisplay"))


def _printed(said: str) -> str:
    """Return the output of a command without the lines that the shell tool adds."""
    header = _SHELL_HEADER.match(said)
    lines = said[header.end() :].split("\n") if header else []
    while lines and lines[-1].startswith(_SHELL_FOOTER):
        lines.pop()
    return "\n".join(lines) if header else said


def _content(content: object) -> tuple[str, tuple[Image, ...]]:
    """Return the text of a string or a list of parts, and the images. Responses to calls are left out."""
    if isinstance(content, str):
        return content, ()
    texts: list[str] = []
    images: list[Image] = []
    for part in content if isinstance(content, list) else ():
        inline = record(record(part).get("inlineData"))
        kind = text(inline.get("mimeType"))
        if encoded := string(inline.get("data")):
            image = image_from_text(encoded, kind)
            is_image = kind.startswith("image")
            images += [image] if is_image else []
            texts.append(image_text(image) if is_image else f"[file {kind}]")
        else:
            texts.append(text(part) or text(record(part).get("text")))
    return "\n".join(filter(None, texts)), tuple(images)


FORMAT = Format(
    name="gemini",
    title="Gemini CLI",
    detect=detect,
    read=by_record(_RecordReader),
    folders=TranscriptFolders(
        homes=("~",),
        patterns=(".gemini/tmp/*/chats/session-*.json", ".gemini/tmp/*/chats/session-*.jsonl"),
        variable="GEMINI_CLI_HOME",
    ),
)
