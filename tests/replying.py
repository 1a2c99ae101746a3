"""Replies of a model, and an observer that gets them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from omcli.base.errors import OmError
from omcli.llm.model import Reply
from omcli.memory.batch import Batch, Observed
from omcli.memory.observation import Draft, Observation, Source
from omcli.observers.model import ModelObserver
from omcli.observers.rules import RuleObserver
from omcli.tokenizers import counter
from tests.batches import Talk
from tests.fakes import ScriptedModel

TOKEN = "5f0e8d31c2a97b64"
NOW = "2026-03-02T20:00:00.000Z"


class Silent:
    """Rules that find nothing, for what a model alone comes to."""

    def observe(self, batch: Batch) -> Observed:
        return Observed(drafts=())


def said(text: str, *sources: str, **fields: object) -> dict[str, object]:
    """A row of a reply: a fact of medium priority unless `fields` say otherwise."""
    row: dict[str, object] = {
        "text": text, "priority": "medium", "kind": "fact", "status": None, "at": "2026-03-02 10:00",
        "refers_to": None, "refers_to_kind": None, "sources": list(sources), "replaces": [], "under": None,
    }  # fmt: skip
    return row | fields


def answer(*rows: dict[str, object], **fields: object) -> str:
    """A reply with these rows."""
    empty: dict[str, object] = {"used": [], "current_task": None, "next_step": None, "title": None}
    return json.dumps({"observations": list(rows)} | empty | fields, ensure_ascii=False)


def observer(model: ScriptedModel, **options: Any) -> ModelObserver:
    """An observer with this model, and nothing random about it; rules find nothing unless `rules` says otherwise."""
    given: dict[str, Any] = {"rules": Silent(), "counter": counter("chars-4")} | options
    return ModelObserver(model, new_token=lambda: TOKEN, now=lambda: NOW, **given)


def batch_of(talk: Talk, *standing: Observation) -> Batch:
    """A batch of all messages of a conversation."""
    return replace(talk.batch(), context_rows=standing)


def observed(talk: Talk | Batch, *replies: str | Reply | OmError, **options: Any) -> Observed:
    """What comes of a conversation when the model answers this."""
    batch = talk if isinstance(talk, Batch) else talk.batch()
    return observer(ScriptedModel(*replies), **options).observe(batch)


def shown(talk: Talk | Batch, **options: Any) -> str:
    """What a model is shown of a conversation, but for pictures and the rules."""
    model = ScriptedModel(answer())
    observer(model, **options).observe(talk if isinstance(talk, Batch) else talk.batch())
    return model.last_seen


def by_model(observed: Observed) -> list[Draft]:
    """The rows that are the model's."""
    return [draft for draft in observed.drafts if draft.source is Source.MODEL]


__all__ = ["NOW", "TOKEN", "RuleObserver", "answer", "batch_of", "by_model", "observed", "observer", "said", "shown"]
