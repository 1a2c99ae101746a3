"""Messages and rows to put into a store, each told apart by a number or a text."""

from __future__ import annotations

from collections.abc import Mapping

from omcli.memory.message import Image, Incoming, Message, MessageKind, Role, digest
from omcli.memory.observation import Kind, Observation, Priority, Source, Status, Type
from omcli.memory.session import Session

NOW = "2026-03-02T10:00:00.000Z"
LATER = "2026-03-02T11:00:00.000Z"
COUNTER = "words"


def session(name: str = "s", *, cwd: str | None = "/src/app") -> Session:
    """A session read from a transcript."""
    return Session(id=name, agent="claude-code", cwd=cwd)


def said(
    text: str,
    *,
    role: Role = Role.USER,
    tokens: int = 10,
    identity: str | None = None,
    key: str | None = None,
    id: str | None = None,  # noqa: A002 - the field's name
    at: str | None = None,
    kind: MessageKind | None = None,
    agent: str | None = None,
    images: tuple[Image, ...] = (),
) -> Incoming:
    """A message on its way in; the same text is the same message unless `identity` says otherwise."""
    message = Message(role=role, text=text, id=id, at=at, kind=kind, agent=agent, images=images)
    return Incoming(message=message, identity=digest(identity or text), key=key or id or f"k-{text}", tokens=tokens)


def call(call_id: str, *, tokens: int = 10, text: str = "{}") -> Incoming:
    """A tool call."""
    message = Message(role=Role.CALL, text=text, tool="Bash", call_id=call_id)
    return Incoming(
        message=message, identity=digest("call", call_id, text), key=f"call-{call_id}{text[2:]}", tokens=tokens
    )


def result(call_id: str, *, tokens: int = 10, exit_code: int | None = 0) -> Incoming:
    """What a tool answered."""
    message = Message(role=Role.RESULT, text="ok", tool="Bash", call_id=call_id, failed=False, exit_code=exit_code)
    return Incoming(message=message, identity=digest("result", call_id), key=f"result-{call_id}", tokens=tokens)


def row_id(number: int) -> str:
    """A UUIDv7 whose end is the number."""
    return f"01890000-0000-7000-8000-{number:012x}"


def row(
    number: int,
    *,
    text: str = "a fact",
    session: str | None = "s",
    project: str | None = "/src/app",
    kind: Kind = Kind.OBSERVATION,
    type: Type = Type.FACT,  # noqa: A002 - the field's name
    priority: Priority = Priority.MEDIUM,
    status: Status | None = None,
    observed_at: str = NOW,
    event_at: str | None = None,
    sources: tuple[int, ...] = (),
    tokens: int = 3,
    counter: str = COUNTER,
    tags: tuple[str, ...] = (),
    metadata: Mapping[str, object] | None = None,
    superseded_by: str | None = None,
    dropped_at: str | None = None,
    supports: tuple[str, ...] = (),
    generation: int = 0,
) -> Observation:
    """A row of memory."""
    return Observation(
        id=row_id(number),
        session=session,
        project=project,
        kind=kind,
        supports=supports,
        generation=generation,
        type=type,
        priority=priority,
        importance=5,
        status=status,
        text=text,
        observed_at=observed_at,
        event_at=event_at,
        refers_to=None,
        message_ids=(),
        sources=sources,
        tokens=tokens,
        counter=counter,
        source=Source.RULES,
        tags=tags,
        metadata=metadata or {},
        superseded_by=superseded_by,
        dropped_at=dropped_at,
    )
