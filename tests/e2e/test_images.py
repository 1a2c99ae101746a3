"""Images: shown to a model that takes some, kept no longer than that, and never as text."""

from __future__ import annotations

import base64
import json

from tests.conftest import Om
from tests.e2e.contents import number_of, remove
from tests.fake_provider import KEY, FakeModel

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
ENCODED = base64.b64encode(PICTURE).decode()


def transcript() -> str:
    shown = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ENCODED}}
    asked = {"type": "text", "text": "Why is the button of the login page red?"}
    turns = [
        {"role": "user", "content": [asked, shown]},
        {"role": "assistant", "content": [{"type": "text", "text": "Since its class is `danger`."}]},
    ]
    return json.dumps({"messages": turns})


def pictures(om: Om) -> int:
    return number_of(om.place, "pictures")


def images_of(model: FakeModel) -> list[dict[str, object]]:
    """What the model was shown that is no text."""
    return [part for part in model.asked[-1].parts if part["type"] not in ("text", "input_text")]


def observe(om: Om, model: FakeModel, wire: str, *more: str) -> str:
    url = {"anthropic": model.root, "openai": model.url}[wire]
    key = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}[wire]
    named = ("--observer", wire, "--model", "seeing", "--base-url", url)
    return om("observe", *named, *more, stdin=transcript(), env={key: KEY}).stdout


def test_a_model_sees_the_image_beside_its_message_and_the_store_lets_it_go(om: Om, fake_model: FakeModel) -> None:
    """S2.5, S2.20, O21: inline on both wires."""
    for wire in ("anthropic", "openai"):
        remove(om.place)
        observe(om, fake_model, wire)
        assert ENCODED in json.dumps(images_of(fake_model)), wire
        assert ENCODED not in fake_model.asked[-1].text
        assert pictures(om) == 0


def test_an_image_waits_with_its_message_and_is_seen_when_that_is_observed(om: Om, fake_model: FakeModel) -> None:
    """S2.5: kept by one process, shown to the model by the next."""
    observe(om, fake_model, "openai", "--later")
    assert pictures(om) == 1
    assert fake_model.asked == []
    observe(om, fake_model, "openai")
    assert ENCODED in json.dumps(images_of(fake_model))
    assert pictures(om) == 0


def test_a_failed_call_keeps_the_image_for_the_next(om: Om, fake_model: FakeModel) -> None:
    """T12."""
    url = ("--base-url", "http://127.0.0.1:9/v1")
    om(
        "observe",
        "--observer",
        "openai",
        *url,
        "--model",
        "x",
        stdin=transcript(),
        env={"OPENAI_API_KEY": KEY},
        code=69,
    )
    assert pictures(om) == 1
    observe(om, fake_model, "openai")
    assert ENCODED in json.dumps(images_of(fake_model))


def test_watching_keeps_the_image_until_its_message_is_due(om: Om, fake_model: FakeModel) -> None:
    """S2.5: as `om observe --later` does."""
    om.write("t.json", transcript())
    named = ("--observer", "openai", "--model", "seeing", "--base-url", fake_model.url)
    om("watch", "t.json", "--once", *named, env={"OPENAI_API_KEY": KEY})
    assert pictures(om) == 1
    assert fake_model.asked == []
    om("observe", "t.json", *named, env={"OPENAI_API_KEY": KEY})
    assert ENCODED in json.dumps(images_of(fake_model))
    assert pictures(om) == 0


def test_consolidating_shows_the_image_to_the_model(om: Om, fake_model: FakeModel) -> None:
    """S2.5: the transcript is read and observed in one run."""
    om.write("t.json", transcript())
    named = ("--observer", "openai", "--model", "seeing", "--base-url", fake_model.url)
    om("consolidate", "--place", "t.json", *named, env={"OPENAI_API_KEY": KEY})
    assert any(ENCODED in json.dumps(asked.parts) for asked in fake_model.asked)
    assert pictures(om) == 0


def test_no_image_is_kept_for_rules_or_for_a_model_that_takes_none(om: Om, fake_model: FakeModel) -> None:
    """T5, F64: and its text is a placeholder."""
    om("observe", stdin=transcript())
    assert pictures(om) == 0
    om("observe", "--model", "ollama/blind", "--base-url", fake_model.url, "--session", "b", stdin=transcript())
    assert "[image png 2 KB]" in fake_model.asked[-1].text
    assert images_of(fake_model) == []
    for command in (("log", "--all", "--jsonl"), ("context", "--json")):
        assert ENCODED[:40] not in om(*command).stdout
