"""What tests use in place of the outside world, under the same contract tests as the real thing."""

from __future__ import annotations

from tests.fakes.models import ScriptedModel, WordCounter
from tests.fakes.store import KEY, MemoryStore, empty_store, encrypted_store

__all__ = ["KEY", "MemoryStore", "ScriptedModel", "WordCounter", "empty_store", "encrypted_store"]
