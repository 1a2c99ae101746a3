"""Batches for observers, written as a conversation: what was said, and which tools were used to what effect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from omcli.memory.batch import Batch
from omcli.memory.message import Incoming, KeptMessage, Message, MessageKind, Role, digest
from omcli.memory.observation import Draft, LogQuery, Observation, Type
from omcli.memory.session import Session
from omcli.observers.rules import RuleObserver
from omcli.operations.clock import Clock, id_at
from omcli.operations.deps import Deps
from omcli.operations.observe.session import observe_session
from omcli.reflectors.rules import RuleReflector
from omcli.tokenizers import counter
from tests.fakes import MemoryStore
from tests.fakes.deps import by_observer, by_reflector


@dataclass
class Talk:
    """A conversation under construction; every method adds to it and returns it."""

    cwd: str | None = "/src/app"
    kept: list[KeptMessage] = field(default_factory=list)

    def user(self, text: str, *, kind: MessageKind | None = None, name: str | None = None) -> Talk:
        return self.add(Message(role=Role.USER, text=text, kind=kind, name=name, at=self._at()))

    def agent(self, text: str) -> Talk:
        return self.add(Message(role=Role.ASSISTANT, text=text, at=self._at()))

    def event(self, text: str, kind: MessageKind) -> Talk:
        return self.add(Message(role=Role.EVENT, text=text, kind=kind, at=self._at()))

    def tool(
        self,
        name: str,
        arguments: Mapping[str, object] | str,
        output: str | None = "",
        *,
        failed: bool | None = False,
        exit_code: int | None = None,
        agent: str | None = None,
    ) -> Talk:
        """A call and its result; no result where `output` is None."""
        call_id = f"call-{len(self.kept)}"
        given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        self.add(Message(role=Role.CALL, text=given, tool=name, call_id=call_id, at=self._at(), agent=agent))
        if output is None:
            return self
        return self.add(
            Message(
                role=Role.RESULT,
                text=output,
                tool=name,
                call_id=call_id,
                failed=failed,
                exit_code=exit_code,
                at=self._at(),
                agent=agent,
            )
        )

    def add(self, message: Message) -> Talk:
        seq = len(self.kept) + 1
        self.kept.append(
            KeptMessage(seq=seq, session="s", key=f"m{seq}", message=message, tokens=len(message.text), counter="test")
        )
        return self

    def batch(self) -> Batch:
        return Batch(session="s", after=0, through=len(self.kept), messages=tuple(self.kept), cwd=self.cwd)

    def observed(self) -> tuple[Draft, ...]:
        return RuleObserver().observe(self.batch()).drafts

    def one(self) -> Draft:
        """The only row; fails where there are none or several."""
        rows = self.observed()
        assert len(rows) == 1, f"expected one row, got {[row.text for row in rows]}"
        return rows[0]

    def texts(self) -> list[str]:
        return [row.text for row in self.observed()]

    def _at(self) -> str:
        minutes = len(self.kept)
        return f"2026-03-02T{10 + minutes // 60:02}:{minutes % 60:02}:00.000Z"


_NOW = "2026-03-02T20:00:00.000Z"


def remembered(talk: Talk, *ends: int) -> MemoryStore:
    """A store that took the conversation in piece by piece: up to each of these messages, then the rest."""
    store, numbers = MemoryStore(), count()
    workshop = Deps(
        open_store=lambda: store,
        counter=counter("chars-4"),
        observer=by_observer(RuleObserver()),
        reflector=by_reflector(RuleReflector(counter("chars-4"))),
        clock=Clock(_NOW),
        new_id=lambda: id_at(1_772_000_000_000, next(numbers)),
        owner="me",
        wait=0.0,
    )
    begin = 0
    for end in (*sorted(ends), len(talk.kept)):
        incoming = [
            Incoming(message=kept.message, identity=digest(kept.key), key=kept.key, tokens=1)
            for kept in talk.kept[begin:end]
        ]
        store.messages.append(Session(id="s", agent="made", cwd=talk.cwd), incoming, counter="chars-4", now=_NOW)
        for _ in observe_session("s", workshop):
            pass
        begin = max(begin, end)
    return store


def in_sight(store: MemoryStore, *types: Type, hidden: bool = False) -> list[Observation]:
    """The rows in sight, of these types where any are given; with `hidden` those out of sight as well."""
    return [logged.observation for logged in store.rows.log(LogQuery(types=types, hidden=hidden))]
