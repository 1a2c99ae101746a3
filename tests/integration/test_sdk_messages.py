"""Messages between a memory and the SDKs of OpenAI and Anthropic: mypy checks their types, an endpoint what is sent."""

from __future__ import annotations

from pathlib import Path

import anthropic
import openai
import pytest

from omcli import ContextCompressor
from tests.fake_provider import KEY, Act, FakeModel

NOW = "2026-02-10T09:00:00Z"


@pytest.fixture
def memory(tmp_path: Path, fake_model: FakeModel) -> ContextCompressor:
    """A memory of a short talk, for an agent whose model is about to answer."""
    fake_model.then(Act(text="At 12:04."))
    made = ContextCompressor("tides", db=tmp_path / "m.db", now=NOW)
    made.ingest([{"role": "user", "content": "Always use metric units."}, {"role": "assistant", "content": "I will."}])
    made.flush()
    made.ingest({"role": "user", "content": "When is high water?"})
    return made


def test_messages_go_to_openai_and_its_answer_comes_back(memory: ContextCompressor, fake_model: FakeModel) -> None:
    context = memory.build_context()
    client = openai.OpenAI(api_key=KEY, base_url=f"{fake_model.url}/v1")
    answered = client.chat.completions.create(
        model="small-1", messages=[{"role": "system", "content": context.memory}, *context.messages]
    )
    assert memory.ingest(answered.choices[0].message).new == 1
    [asked] = fake_model.asked
    assert [message["role"] for message in asked.body["messages"]] == ["system", "user", "assistant", "user"]
    assert memory.build_context().messages[-1] == {"role": "assistant", "content": "At 12:04."}


def test_messages_go_to_anthropic_and_its_answer_comes_back(memory: ContextCompressor, fake_model: FakeModel) -> None:
    context = memory.build_context()
    client = anthropic.Anthropic(api_key=KEY, base_url=fake_model.url)
    answered = client.messages.create(
        model="small-1", max_tokens=100, system=context.memory, messages=context.anthropic_messages
    )
    assert memory.ingest(answered).new == 1
    [asked] = fake_model.asked
    assert [message["role"] for message in asked.body["messages"]] == ["user", "assistant", "user"]
    assert memory.build_context().messages[-1] == {"role": "assistant", "content": "At 12:04."}
