"""What tests use in place of the outside world, under the same contract tests as the real thing."""

from __future__ import annotations

from tests.fakes.models import ScriptedModel, WordCounter
from tests.fakes.store import MemoryStore, empty_store

__all__ = ["MemoryStore", "ScriptedModel", "WordCounter", "empty_store"]
