"""Claude Code: reading the records of a transcript, separately for session facts and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, count
from typing import Self

from omcli.base import lazily
from omcli.formats.claude_code import user
from omcli.formats.claude_prompts import is_from_server
from omcli.formats.injected import without_injected
from omcli.formats.source import Record
from omcli.formats.values import compact_json, objects, record, string, text
from omcli.memory.message import Message, MessageKind, Role
from omcli.memory.transcript import Item, ReaderState, Reason, Skip
from omcli.text.hashes import HashSet, hash_of, packed, packed_counts, unpacked, unpacked_counts
from omcli.text.instants import instant

_USER_BLOCKS = frozenset({"text", "image", "document", "tool_result"})
_SILENT_BLOCKS = frozenset({"text", "thinking", "redacted_thinking", "fallback"})
_EXIT_CODE = lazily(r"(?:Error: )?Exit code (-?\d{1,9})\b")
_MALFORMED = Skip(Reason.MALFORMED)
LONGEST_NAME = 40


class SessionReader:
    """Remembers the current session's facts, so that only changes are reported."""

    def __init__(self) -> None:
        self.home: str | None = None
        """The first working directory of the current session."""
        self._homes: dict[str | None, str] = {}
        self._known: dict[str, str] = {}
        self._named_by_person: set[str | None] = set()
        self._last: str | None = None
        """The id of the last record that has one."""

    @classmethod
    def resume(cls, state: ReaderState) -> Self:
        session = cls()
        session.home, session._homes = state["home"], dict(state["homes"])
        session._known, session._named_by_person = state["told"], set(state["named_by_person"])
        session._last = state.get("last")
        return session

    def state(self) -> ReaderState:
        homes, named, told = list(self._homes.items()), list(self._named_by_person), dict(self._known)
        return {"home": self.home, "homes": homes, "told": told, "named_by_person": named, "last": self._last}

    def learn(self, entry: Record, kind: str) -> dict[str, str]:
        """Remember and return the session facts that a record changes."""
        session = string(entry.get("sessionId")) or string(entry.get("session_id")) or self._known.get("session")
        parent = user.session_before(entry, session)
        if session != self._known.get("session"):
            if self._last is not None and entry.get("parentUuid") == self._last:  # a resumed session
                parent = parent or self._known.get("session")
            self._known = {}
            self.home = self._homes.get(session)
        self._last = string(entry.get("uuid")) or self._last
        if self.home is None and (cwd := string(entry.get("cwd"))):
            self.home = self._homes[session] = cwd
        now = {"session": session, "cwd": self.home, "title": self._title(entry, kind, session), "parent": parent}
        # A subagent's model and worktree are not the session's.
        if _agent(entry) is None:
            model = entry.get("model") if kind == "system" else record(entry.get("message")).get("model")
            now |= {"branch": string(entry.get("gitBranch")), "model": string(model)}
            if model == "<synthetic>":
                del now["model"]
        changes = {name: value for name, value in now.items() if value and self._known.get(name) != value}
        self._known |= changes
        return changes

    def _title(self, entry: Record, kind: str, session: str | None) -> str | None:
        """Return the title in a record, if any. A model's title never replaces a person's.

        `summary` records are ignored, because they name other sessions.
        """
        if kind == "custom-title":
            self._named_by_person.add(session)
            return string(entry.get("customTitle"))
        if kind == "ai-title" and session not in self._named_by_person:
            return string(entry.get("aiTitle"))
        return None


class MessageReader:
    """Reads the messages of one transcript. Seen ids are kept as 64-bit hashes to limit memory use."""

    def __init__(self) -> None:
        self._seen = HashSet()
        self._open_calls: dict[str, str] = {}
        """Tool names of calls without a result yet, by call id."""
        self._answers: Counter[int] = Counter()
        """Number of visible blocks of each assistant message so far, by the hash of its id."""
        self._queue = user.PromptQueue()
        self._in_editor = False
        self._readers: dict[str, Callable[[Record, partial[Message]], Iterable[Item]]] = {
            "user": self._user,
            "assistant": self._reply,
            "system": self._system,
            "attachment": self._attachment,
            "queue-operation": self._queue_operation,
        }

    @classmethod
    def resume(cls, state: ReaderState) -> Self:
        reading = cls()
        reading._seen = HashSet(unpacked(state["seen"]))
        reading._open_calls = state["open_calls"]
        reading._answers = unpacked_counts(state["answers"])
        reading._queue = user.PromptQueue.resume(state["queue"])
        reading._in_editor = state["in_editor"]
        return reading

    def state(self) -> ReaderState:
        return {
            "seen": packed(self._seen),
            "open_calls": dict(self._open_calls),
            "answers": packed_counts(self._answers),
            "queue": self._queue.state(),
            "in_editor": self._in_editor,
        }

    def items(self, entry: Record, kind: str, *, cwd: str | None) -> Iterator[Item]:
        """Yield the items of one record, at least one."""
        key = _key("record", string(entry.get("uuid")))
        if key is not None and key in self._seen:
            yield Skip(Reason.REPEATED)
            return
        found: list[Item] = []
        if reader := self._readers.get(kind):
            message = partial(Message, at=instant(entry.get("timestamp")), agent=_agent(entry), cwd=cwd)
            found.extend(reader(entry, message))
        # A malformed record must not hide a valid one with the same id.
        if key is not None and found != [_MALFORMED]:
            self._seen.add(key)
        yield from found or [Skip(Reason.NOISE)]

    def _user(self, entry: Record, message: partial[Message]) -> Iterable[Item]:
        """Return the items of a user record: tool results, then the prompt, or only a summary if the record is one."""
        content = _content(entry)
        if content is None:
            return [_MALFORMED]
        if entry.get("isCompactSummary") is True:
            summary = without_injected("\n\n".join(user.texts_and_images(content)[0]))
            return [message(role=Role.EVENT, kind=MessageKind.SUMMARY, text=summary, id=string(entry.get("uuid")))]
        results: list[Iterable[Item]] = []
        for block in objects(content):
            kind = text(block.get("type"))
            if kind == "tool_result":
                results.append(self._result(entry, block, message))
            elif kind not in _USER_BLOCKS:
                results.append([Skip(Reason.UNKNOWN_TYPE, kind[:LONGEST_NAME])])
        return chain(*results, self._prompt(entry, content, message))

    def _prompt(self, entry: Record, content: object, message: partial[Message]) -> Iterator[Item]:
        content_read = user.read_content(*user.texts_and_images(content))
        self._in_editor |= content_read.in_editor
        if user.is_injected(entry):
            yield from [Skip(Reason.INJECTED)] if content_read.prompt or content_read.is_injected else []
            return
        ids = _ids(string(entry.get("uuid")))
        for event in content_read.events:
            yield message(role=Role.EVENT, kind=event.kind, text=event.text, id=next(ids))
        yield from content_read.skips
        if content_read.prompt:
            by_agent = MessageKind.DELEGATED if _agent(entry) else None
            yield message(
                role=Role.USER, kind=by_agent, text=content_read.prompt, id=next(ids), images=content_read.images
            )
        elif content_read.is_injected and not content_read.events:
            yield Skip(Reason.INJECTED)

    def _result(self, entry: Record, block: Record, message: partial[Message]) -> Iterator[Item]:
        call = string(block.get("tool_use_id"))
        if call is None:
            yield _MALFORMED
            return
        if self._is_repeated("result", call):
            yield Skip(Reason.REPEATED)
            return
        tool = self._open_calls.pop(call, None)
        parts, images = user.texts_and_images(block.get("content"))
        said = without_injected("\n".join(parts))
        if said.startswith("<tool_use_error>"):
            said = said.removeprefix("<tool_use_error>").rstrip().removesuffix("</tool_use_error>")
        exit_code = _EXIT_CODE.match(said)
        # In this format, unlike others, a missing flag means success.
        failed = block.get("is_error") is True
        yield message(
            role=Role.RESULT, text=said, id=f"{call}:result", call_id=call, tool=tool, failed=failed,
            exit_code=int(exit_code[1]) if exit_code else None, images=images,
        )  # fmt: skip
        if failed and (remark := user.refuse_reason(entry, result=said, tool=tool, in_editor=self._in_editor)):
            yield message(role=Role.USER, kind=MessageKind.REMARK, text=remark, id=f"{call}:remark", call_id=call)
        if not is_from_server(tool) and (answers := user.answer_lines(entry)):
            yield message(role=Role.USER, kind=MessageKind.ANSWER, text=answers, id=f"{call}:answer", call_id=call)

    def _reply(self, entry: Record, message: partial[Message]) -> Iterable[Item]:
        content = _content(entry)
        if content is None:
            return [_MALFORMED]
        said = record(entry.get("message"))
        if said.get("model") == "<synthetic>" or entry.get("isApiErrorMessage") is True:
            return ()  # written by the client
        items: list[Iterable[Item]] = []
        if answer := "\n\n".join(_texts(content)):
            items.append(self._answer(answer, string(said.get("id")) or string(entry.get("uuid")), message))
        for block in objects(content):
            kind = text(block.get("type"))
            if kind.endswith("tool_use"):
                items.append(self._call(block, message))
            elif kind not in _SILENT_BLOCKS:
                items.append([Skip(Reason.UNKNOWN_TYPE, kind[:LONGEST_NAME])])
        return chain.from_iterable(items)

    def _answer(self, answer: str, message_id: str | None, message: partial[Message]) -> Iterator[Item]:
        """Yield visible text as a message.

        Each block of an assistant message is a separate record, and normally at most one is visible. Waiting for others
        would delay the newest answer in a live session, and joining them would change a stored message. So later
        visible blocks become CONTINUED messages with ids such as `<id>~2`.
        """
        key = _key("answer", message_id)
        if key is not None and self._is_repeated("text", f"{message_id} {answer}"):
            yield Skip(Reason.REPEATED)
            return
        nth = 1
        if key is not None:
            self._answers[key] += 1
            nth = self._answers[key]
        if nth == 1:
            yield message(role=Role.ASSISTANT, text=answer, id=message_id)
        else:
            yield message(role=Role.ASSISTANT, kind=MessageKind.CONTINUED, text=answer, id=f"{message_id}~{nth}")

    def _call(self, block: Record, message: partial[Message]) -> Iterator[Item]:
        call, tool, arguments = string(block.get("id")), string(block.get("name")), block.get("input")
        if call is None or tool is None:
            yield _MALFORMED
        elif self._is_repeated("call", call):
            yield Skip(Reason.REPEATED)
        else:
            self._open_calls[call] = tool
            if arguments is None:
                yield _MALFORMED
            else:
                yield message(role=Role.CALL, text=compact_json(arguments), id=call, call_id=call, tool=tool)

    def _system(self, entry: Record, message: partial[Message]) -> Iterator[Item]:
        said, uuid = text(entry.get("content")), string(entry.get("uuid"))
        if entry.get("subtype") == "compact_boundary":
            yield message(role=Role.EVENT, kind=MessageKind.COMPACTION, text=said or "Conversation compacted", id=uuid)
        elif entry.get("subtype") == "local_command":
            for event in user.read_content(*user.texts_and_images(said)).events:
                yield message(role=Role.EVENT, kind=event.kind, text=event.text, id=uuid)

    def _attachment(self, entry: Record, message: partial[Message]) -> Iterable[Item]:
        said = partial(message, id=string(entry.get("uuid")))
        return chain.from_iterable(map(partial(_waiting_prompt, message=said), self._queue.attachment(entry)))

    def _queue_operation(self, entry: Record, message: partial[Message]) -> Iterable[Item]:
        prompts: list[Iterable[Item]] = []
        for queued in self._queue.operation(entry):
            typed = string(queued.timestamp) or string(entry.get("timestamp"))
            said = partial(message, at=instant(typed), id=f"queued:{typed}" if typed else None)
            prompts.append(_waiting_prompt(queued, message=said))
        return chain.from_iterable(prompts)

    def _is_repeated(self, kind: str, producer_id: str) -> bool:
        key = _key(kind, producer_id)
        return key is not None and not self._seen.add(key)


def _key(kind: str, producer_id: str | None) -> int | None:
    """Return the hash of an id, or None if it is missing or masked: some exports give many ids the same mask."""
    return None if producer_id is None or "REDACTED" in producer_id else hash_of(kind, producer_id)


def _ids(uuid: str | None) -> Iterator[str | None]:
    """Yield ids for the messages of one record, beginning with the record's own."""
    yield uuid
    yield from (f"{uuid}~{nth}" if uuid else None for nth in count(2))


def _agent(entry: Record) -> str | None:
    """Return the id of a record's subagent or, in headless output, of the call that started it, or None for the main
    thread.
    """
    if entry.get("isSidechain") is True:
        return string(entry.get("agentId")) or "sidechain"
    return string(entry.get("parent_tool_use_id"))


def _content(entry: Record) -> object:
    """Return a message's text or list of blocks, or None if it has neither."""
    said = entry.get("message")
    content = said.get("content") if isinstance(said, dict) else said
    return content if isinstance(content, str | list) else None


def _texts(content: object) -> Iterator[str]:
    """Yield the visible text blocks of an assistant's content, without the blank ones that precede thinking."""
    blocks = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    for block in blocks:
        words = text(block.get("text")) if isinstance(block, dict) and block.get("type") == "text" else text(block)
        if words.strip():
            yield words


def _waiting_prompt(queued: user.WaitingPrompt, *, message: partial[Message]) -> Iterator[Item]:
    content_read = user.read_content(*user.texts_and_images(queued.content))
    if content_read.prompt:
        yield message(role=Role.USER, kind=MessageKind.QUEUED, text=content_read.prompt, images=content_read.images)
