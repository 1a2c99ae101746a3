"""Models behind HTTP, on both wires, against an endpoint that fails in every way that endpoints fail."""

from __future__ import annotations

import base64
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omcli.base.errors import (
    BadConfiguration,
    NotAllowed,
    NotAModel,
    OmError,
    PromptTooLong,
    ProviderFailed,
    UnknownModel,
    Unreachable,
    Unusable,
)
from omcli.base.record import replace
from omcli.llm.model import Calls, EndReason, OutputMode, Picture, Prompt, Reply
from omcli.providers.anthropic_messages import AnthropicMessages
from omcli.providers.openai_chat import OpenaiChat
from omcli.providers.remote import RemoteModel, RemoteTarget
from omcli.providers.resolve import ModelSpec, provider
from omcli.providers.wire import Wire
from tests.fake_provider import KEY, PROSE, Act, FakeModel, KnownOutputModes
from tests.strategies import examples

SCHEMA = {
    "type": "object",
    "properties": {"observations": {"type": "array", "items": {"type": "object"}}},
    "required": ["observations"],
    "additionalProperties": False,
}
PROMPT = Prompt(system="Keep what matters.", content=("m1 14:32 user: low tide",), schema=SCHEMA, name="observations")
LARGE = replace(PROMPT, max_output=100_000)
JSON = Act(text='{"observations": []}')
MODEL = "small-1"
PICTURE = Picture(media_type="image/png", data=b"\x89PNG")
CERTIFICATES = Path(__file__).parent / "certificates"


class Asking:
    """A remote model whose waits are noted and not waited."""

    def __init__(self, wire: str, fake: FakeModel) -> None:
        self.wire, self.fake = wire, fake
        self.waits: list[float] = []
        self.late = 0.0
        self.output_modes = KnownOutputModes()

    @property
    def url(self) -> str:
        return self.fake.root if self.wire == "anthropic" else self.fake.url

    def ask(self, prompt: Prompt = PROMPT, *, seconds: float = 50, takes_images: bool = True) -> Reply:
        asked = replace(prompt, calls=Calls())
        return self.model(seconds=seconds, takes_images=takes_images).ask(asked)

    def model(self, *, seconds: float = 50, takes_images: bool = True, effort: str | None = None) -> RemoteModel:
        spoken: Wire = (
            AnthropicMessages(base_url=self.url, key=KEY, effort=effort)
            if self.wire == "anthropic"
            else OpenaiChat(base_url=self.url, key=KEY, effort=effort)
        )
        return RemoteModel(
            target=RemoteTarget(endpoint=self.wire, address=self.url, key_from="THE_KEY", secrets=(KEY,)),
            model=MODEL,
            wire=spoken,
            output_modes=self.output_modes,
            seconds=seconds,
            takes_images=takes_images,
            clock=lambda: time.monotonic() + self.late,
            sleep=self._wait,
        )

    def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.late += seconds

    def known(self) -> OutputMode | None:
        return self.output_modes.output_mode(self.url, MODEL)


@pytest.fixture(params=["anthropic", "openai"])
def asking(request: pytest.FixtureRequest, fake_model: FakeModel) -> Asking:
    return Asking(request.param, fake_model)


@pytest.fixture
def on_chat(fake_model: FakeModel) -> Asking:
    return Asking("openai", fake_model)


@pytest.fixture
def on_messages(fake_model: FakeModel) -> Asking:
    return Asking("anthropic", fake_model)


def failure(asking: Asking, prompt: Prompt = PROMPT, *, seconds: float = 20) -> OmError:
    """What an ask fails with, after a look at how it is told."""
    with pytest.raises(OmError) as failed:
        asking.ask(prompt, seconds=seconds)
    told = failed.value.message
    assert len(told) <= 200
    assert "\n" not in told
    assert KEY not in told + failed.value.hint
    assert "low tide" not in told
    return failed.value


# What is sent.


def test_structure_is_asked_for_by_schema_with_every_key_as_it_was_given(asking: Asking) -> None:
    """F41, T26: what the schema says goes over the wire unchanged."""
    asking.fake.then(JSON)
    asking.ask()
    [asked] = asking.fake.asked
    assert asked.output_mode is OutputMode.JSON_SCHEMA
    assert asked.schema == SCHEMA
    assert asked.key == KEY
    assert "temperature" not in asked.body


def test_output_is_limited_only_where_that_is_asked(on_chat: Asking) -> None:
    on_chat.ask()
    on_chat.ask(replace(PROMPT, max_output=500))
    assert [asked.body.get("max_tokens") for asked in on_chat.fake.asked] == [None, 500]


def test_a_temperature_is_sent_on_the_wire_that_takes_one(on_chat: Asking, fake_model: FakeModel) -> None:
    """F84: the other wire has none, and its SDK fails at it."""
    warm = replace(PROMPT, temperature=0.3)
    on_chat.ask(warm)
    Asking("anthropic", fake_model).ask(warm)
    assert [asked.body.get("temperature") for asked in fake_model.asked] == [0.3, None]


def test_a_temperature_that_is_refused_is_not_sent_again(on_chat: Asking) -> None:
    """F84."""
    on_chat.fake.refused_fields = ("temperature",)
    model = on_chat.model()
    for _ in range(2):
        assert model.ask(replace(PROMPT, temperature=0.3)).stop is EndReason.END
    assert ["temperature" in asked.body for asked in on_chat.fake.asked] == [True, False, False]
    assert not on_chat.waits


def test_effort_is_asked_for_in_the_words_of_the_wire(asking: Asking) -> None:
    """C21: beside the schema, and not again where it is refused."""
    name = "effort" if asking.wire == "anthropic" else "reasoning_effort"
    asking.fake.then(JSON, Act(status=400, error=f"This model does not support the {name} parameter."))
    model = asking.model(effort="low")
    for _ in range(3):
        model.ask(PROMPT)
    sent = [
        asked.body.get("reasoning_effort") or asked.body.get("output_config", {}).get("effort")
        for asked in asking.fake.asked
    ]
    assert sent == ["low", "low", None, None]
    assert all(asked.output_mode is OutputMode.JSON_SCHEMA for asked in asking.fake.asked)


@pytest.mark.parametrize("refused", [("max_tokens",), ("max_tokens", "max_completion_tokens")])
def test_a_limit_goes_by_the_name_the_endpoint_knows_or_by_none(on_chat: Asking, refused: tuple[str, ...]) -> None:
    """F84."""
    on_chat.fake.refused_fields = refused
    on_chat.ask(replace(PROMPT, max_output=500))
    last = on_chat.fake.asked[-1].body
    assert last.get("max_completion_tokens") == (None if len(refused) == 2 else 500)
    assert "max_tokens" not in last


def test_pictures_go_inline(asking: Asking) -> None:
    """S2.20."""
    asking.ask(replace(PROMPT, content=("Before.", PICTURE, "After.")))
    before, picture, after = asking.fake.asked[0].parts
    assert (before["text"], after["text"]) == ("Before.", "After.")
    encoded = base64.b64encode(PICTURE.data).decode()
    if asking.wire == "anthropic":
        assert picture["source"] == {"type": "base64", "media_type": "image/png", "data": encoded}
    else:
        assert picture["image_url"]["url"] == f"data:image/png;base64,{encoded}"


def test_pictures_that_are_refused_become_words(asking: Asking) -> None:
    """S2.20."""
    asking.fake.refused_fields = ("image",)
    assert asking.ask(replace(PROMPT, content=("Before.", PICTURE))).stop is EndReason.END
    assert asking.fake.asked[-1].text == "Before.\n[image png 4 B]"


def test_a_large_output_comes_piece_by_piece(asking: Asking) -> None:
    """F85: without streaming, the SDK of one wire refuses; what lies between cuts off the other."""
    asking.fake.then(Act(text='{"observations": [{"text": "höher und höher, und weiter"}]}'))
    reply = asking.ask(LARGE)
    assert asking.fake.asked[0].is_streamed
    assert json.loads(reply.text)["observations"][0]["text"] == "höher und höher, und weiter"
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (100, 10, 40)
    assert reply.model == MODEL


def test_more_output_than_the_model_can_do_is_asked_for_as_less(on_messages: Asking) -> None:
    """F85."""
    on_messages.fake.then(Act(status=400, error="max_tokens: 100000 > 64000, which is the maximum allowed"))
    on_messages.ask(LARGE)
    assert [asked.body["max_tokens"] for asked in on_messages.fake.asked] == [100_000, 8_192]


# What comes back.


@pytest.mark.parametrize("prompt", [PROMPT, LARGE], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("stop", "expected"), [("length", EndReason.LENGTH), ("refusal", EndReason.REFUSAL), ("end", EndReason.END)]
)
def test_a_reply_says_why_it_stopped(asking: Asking, prompt: Prompt, stop: str, expected: EndReason) -> None:
    """F42: a refusal is a failure, not an empty memory; it is not asked again."""
    asking.fake.then(Act(text='{"observations": []}' if stop == "end" else '{"obs', stop=stop))
    assert asking.ask(prompt).stop is expected
    assert len(asking.fake.asked) == 1


def test_the_end_of_the_context_is_a_cut(on_messages: Asking) -> None:
    on_messages.fake.then(Act(text='{"obs', stop="model_context_window_exceeded"))
    assert on_messages.ask().stop is EndReason.LENGTH


def test_a_refusal_in_the_message_is_one(on_chat: Asking) -> None:
    """F42."""
    message = {"role": "assistant", "content": None, "refusal": "I would rather not."}
    on_chat.fake.then(Act(body=json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})))
    reply = on_chat.ask()
    assert (reply.stop, reply.text) == (EndReason.REFUSAL, "I would rather not.")


def test_tokens_are_summed_over_all_attempts(asking: Asking) -> None:
    asking.fake.then(Act(text=PROSE), Act(status=503), JSON)
    reply = asking.ask()
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (200, 20, 80)


def test_an_endpoint_that_counts_nothing_is_believed(on_chat: Asking) -> None:
    message = {"role": "assistant", "content": "{}"}
    on_chat.fake.then(Act(body=json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})))
    reply = on_chat.ask()
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (None, None, None)
    assert reply.model == MODEL


@pytest.mark.parametrize("tokens", [10**30, -7])
def test_tokens_that_cannot_be_are_none(asking: Asking, tokens: int) -> None:
    asking.fake.then(Act(text=JSON.text, usage={"input": tokens, "output": tokens, "cached": 0}))
    reply = asking.ask()
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


# The ladder.


def test_a_format_that_fails_is_given_up_for_the_next_and_that_is_remembered(on_chat: Asking) -> None:
    """F83: one local server answers `json_schema` with 500."""
    on_chat.fake.refused_formats = {OutputMode.JSON_SCHEMA: 500}
    on_chat.ask()
    on_chat.ask()
    assert [asked.output_mode for asked in on_chat.fake.asked] == [
        OutputMode.JSON_SCHEMA,
        OutputMode.JSON_OBJECT,
        OutputMode.JSON_OBJECT,
    ]
    assert on_chat.fake.asked[1].body["response_format"] == {"type": "json_object", "schema": SCHEMA}
    assert on_chat.known() is OutputMode.JSON_OBJECT
    assert not on_chat.waits


@pytest.mark.parametrize("status", [400, 422, 500])
def test_the_ladder_ends_with_words(asking: Asking, status: int) -> None:
    """F83."""
    asking.fake.refused_formats = {OutputMode.JSON_SCHEMA: status, OutputMode.JSON_OBJECT: status}
    reply = asking.ask()
    last = asking.fake.asked[-1]
    assert last.output_mode is OutputMode.PROMPT
    assert last.system.startswith("Keep what matters.")
    assert json.loads(last.system.splitlines()[-1]) == SCHEMA
    assert json.loads(reply.text)["observations"]
    assert asking.known() is OutputMode.PROMPT


def test_a_schema_that_is_ignored_twice_is_given_up(on_chat: Asking) -> None:
    """F83: one cloud accepts the schema and ignores it. The third call is the last of the ask (XA4)."""
    on_chat.fake.ignored_formats = (OutputMode.JSON_SCHEMA,)
    assert json.loads(on_chat.ask().text)["observations"]
    assert [asked.output_mode for asked in on_chat.fake.asked] == [
        OutputMode.JSON_SCHEMA,
        OutputMode.JSON_SCHEMA,
        OutputMode.PROMPT,
    ]
    assert on_chat.known() is OutputMode.PROMPT


def test_prose_to_the_last_is_handed_on_since_there_is_a_reading_of_text_as_well(on_chat: Asking) -> None:
    """F83, XA4: three requests at most, the last one in words, and from then on one."""
    on_chat.fake.always(Act(text=PROSE))
    assert on_chat.ask().text == PROSE
    assert len(on_chat.fake.asked) == 3
    assert on_chat.known() is OutputMode.PROMPT
    on_chat.ask()
    assert len(on_chat.fake.asked) == 4


def test_fences_and_words_around_json_are_no_reason_to_ask_again(asking: Asking) -> None:
    asking.fake.then(Act(text='Here it is:\n```json\n{"observations": []}\n```\nAnything else?'))
    asking.ask()
    assert len(asking.fake.asked) == 1
    assert asking.known() is OutputMode.JSON_SCHEMA


def test_an_output_mode_of_another_wire_is_not_used(on_messages: Asking) -> None:
    on_messages.output_modes.put_output_mode(on_messages.url, MODEL, OutputMode.JSON_OBJECT)
    on_messages.ask()
    assert on_messages.fake.asked[0].output_mode is OutputMode.JSON_SCHEMA


# What fails for good.

LONG = "This model's maximum context length is 8192 tokens, and the prompt has 9000."
PERMANENT: list[tuple[Act, type[OmError], str]] = [
    (Act(status=401, error=f"invalid key {KEY}"), NotAllowed, "invalid key"),
    (Act(status=402, error="no credit"), NotAllowed, "no credit"),
    (Act(status=403, html=True), NotAllowed, "a web page"),
    (Act(status=429, error="You exceeded your current quota"), NotAllowed, "quota"),
    (Act(status=404, error=f"model: {MODEL} not found"), UnknownModel, MODEL),
    (Act(status=404), BadConfiguration, "404"),
    (Act(status=413, error="too much"), PromptTooLong, "too much"),
    (Act(status=400, error=LONG), PromptTooLong, "8192"),
    (Act(status=400, error="never heard of it"), ProviderFailed, "never heard of it"),
    (Act(status=302, headers={"location": "http://127.0.0.1:9/"}), NotAModel, "302"),
    (Act(html=True), NotAModel, "a web page"),
    (Act(body="not JSON"), NotAModel, "not a model endpoint"),
    (Act(body="[1]"), NotAModel, "not a model endpoint"),
    (Act(body="null"), NotAModel, "not a model endpoint"),
    (Act(body="{}"), NotAModel, "not a model endpoint"),
    (Act(body="[" * 50_000), NotAModel, "not a model endpoint"),
    (Act(error="the model is on strike"), NotAModel, "the model is on strike"),
    (Act(error="no such key", code=401), NotAllowed, "no such key"),
]


@pytest.mark.parametrize(
    ("act", "kind", "said"), PERMANENT, ids=[f"{kind.__name__}-{said}" for _, kind, said in PERMANENT]
)
def test_what_no_attempt_can_mend_is_told_at_once(asking: Asking, act: Act, kind: type[OmError], said: str) -> None:
    """F76, F77, F79, F80, F82: typed, quoted, asked once."""
    asking.fake.always(act)
    failed = failure(asking)
    assert type(failed) is kind
    assert said in failed.message
    assert len(asking.fake.asked) == 1
    assert not asking.waits


def test_the_hint_to_a_key_that_is_refused_names_where_it_comes_from(asking: Asking) -> None:
    """F76."""
    asking.fake.then(Act(status=401, error="no"))
    assert "THE_KEY" in failure(asking).hint


def test_null_content_is_no_reply(asking: Asking) -> None:
    """F80."""
    asking.fake.always(Act(is_null=True))
    assert type(failure(asking)) in (NotAModel, Unusable)
    assert len(asking.fake.asked) == 1


@pytest.mark.parametrize("act", [Act(html=True), Act(error="the model is on strike")], ids=["html", "error"])
def test_a_stream_that_is_none_is_no_model(asking: Asking, act: Act) -> None:
    """F79, F80."""
    asking.fake.always(act)
    assert isinstance(failure(asking, LARGE), ProviderFailed)
    assert len(asking.fake.asked) <= 2


def test_long_and_many_lined_errors_are_one_line(asking: Asking) -> None:
    asking.fake.then(Act(status=400, error="no\n" * 400))
    assert failure(asking).message.endswith("…")


def test_secrets_that_an_endpoint_says_are_not_said_again(asking: Asking) -> None:
    """F46."""
    secret = "sk-ant-api03-" + "Ab1-" * 20
    asking.fake.then(Act(status=400, error=f"strange: {secret}"))
    assert secret not in failure(asking).message


# What passes.


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_passes_is_tried_three_times(asking: Asking, status: int) -> None:
    """F73, F78."""
    asking.fake.always(Act(status=status))
    assert type(failure(asking)) is Unreachable
    assert len(asking.fake.asked) == 3
    assert asking.waits == [1, 2]


@pytest.mark.parametrize(("name", "value"), [("retry-after", "2"), ("retry-after-ms", "2000")])
def test_an_endpoint_is_given_the_time_it_asks_for(asking: Asking, name: str, value: str) -> None:
    """F78."""
    asking.fake.then(Act(status=429, headers={name: value}), JSON)
    asking.ask()
    assert asking.waits == [2]


def test_no_one_is_waited_for_beyond_the_deadline(asking: Asking) -> None:
    """F78."""
    asking.fake.always(Act(status=429, headers={"retry-after": "60"}))
    assert type(failure(asking)) is Unreachable
    assert asking.waits == []


def test_a_retry_the_endpoint_forbids_is_none(asking: Asking) -> None:
    asking.fake.always(Act(status=503, headers={"x-should-retry": "false"}))
    failure(asking)
    assert len(asking.fake.asked) == 1


def test_a_gateway_that_says_within_a_success_to_come_again_is_asked_again(asking: Asking) -> None:
    """F80."""
    asking.fake.then(Act(error="upstream is busy", code=503), JSON)
    assert asking.ask().stop is EndReason.END


@pytest.mark.parametrize("prompt", [PROMPT, LARGE], ids=["whole", "streamed"])
def test_a_connection_that_breaks_in_the_body_is_made_anew(asking: Asking, prompt: Prompt) -> None:
    """F73."""
    asking.fake.then(Act(drop_after=30), JSON)
    assert json.loads(asking.ask(prompt).text) == {"observations": []}


def test_an_error_in_mid_stream_discards_what_came_and_is_tried_once_more(asking: Asking) -> None:
    """F81: the SDK does not try again."""
    asking.fake.then(Act(mid_stream_error="overloaded"), JSON)
    assert json.loads(asking.ask(LARGE).text) == {"observations": []}
    asking.fake.always(Act(mid_stream_error="overloaded"))
    assert "overloaded" in failure(asking, LARGE).message
    assert len(asking.fake.asked) == 4


def test_a_stream_that_just_ends_is_no_reply(asking: Asking) -> None:
    """F81: half a reply is none, whatever the connection says."""
    if asking.wire == "anthropic":
        start = {"type": "message_start", "message": {"model": MODEL, "content": [], "usage": {}}}
        body = f"event: message_start\ndata: {json.dumps(start)}\n\n"
    else:
        chunk = {"model": MODEL, "choices": [{"index": 0, "delta": {"content": '{"obs'}, "finish_reason": None}]}
        body = f"data: {json.dumps(chunk)}\n\n"
    asking.fake.always(Act(body=body, headers={"content-type": "text/event-stream"}))
    assert type(failure(asking, LARGE)) is Unreachable
    assert len(asking.fake.asked) == 2


@pytest.mark.parametrize("prompt", [PROMPT, LARGE], ids=["whole", "streamed"])
@pytest.mark.parametrize("act", [Act(hang=True), Act(trickle=0.2)], ids=["silent", "a byte now and then"])
def test_who_never_finishes_is_left_at_the_deadline(asking: Asking, prompt: Prompt, act: Act) -> None:
    """F74: time-outs of a library start anew with every byte; this one does not."""
    asking.fake.always(act)
    began = time.monotonic()
    assert "within 1 s" in failure(asking, prompt, seconds=1).message
    assert time.monotonic() - began < 50, "the endpoint lets go after a minute"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 900) | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "error", "type"]), inner),
    max_leaves=4,
)


def _mutated(value: Any, data: st.DataObject) -> Any:
    """A value of which one part is something else, or gone."""
    if not isinstance(value, dict | list) or not value or data.draw(st.integers(0, 3)) == 0:
        return data.draw(_JSON)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    at = data.draw(st.sampled_from(keys))
    if isinstance(value, dict):
        rest = {key: inner for key, inner in value.items() if key != at}
        return rest if data.draw(st.booleans()) else {**rest, at: _mutated(value[at], data)}
    return [*value[:at], _mutated(value[at], data), *value[at + 1 :]]


@pytest.mark.parametrize("prompt", [PROMPT, LARGE], ids=["whole", "streamed"])
@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_an_endpoint_sends_is_a_reply_or_a_failure_of_ours(
    asking: Asking, prompt: Prompt, data: st.DataObject
) -> None:
    """F79, F80, F81: one part of a good reply is something else."""
    asking.fake.acts.clear()
    [*events] = asking.fake.example(asking.wire, is_streamed=prompt is LARGE)
    at = data.draw(st.integers(0, len(events) - 1))
    events[at] = _mutated(events[at], data)
    if prompt is LARGE:
        body = "".join(_event(event) for event in events)
        act = Act(body=body, headers={"content-type": "text/event-stream"})
    else:
        act = Act(body=json.dumps(events[0]))
    asking.fake.always(act)
    try:
        reply = asking.ask(prompt)
    except OmError:
        return
    assert isinstance(reply.text, str)
    assert isinstance(reply.stop, EndReason)


def _event(event: object) -> str:
    """A piece of a stream, with the name that one wire gives it and the other passes over."""
    name = event.get("type") if isinstance(event, dict) else None
    return f"event: {name or 'message_delta'}\ndata: {json.dumps(event)}\n\n"


# Nobody there.


@contextmanager
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]  # bound, and not listened to: refused


@contextmanager
def full_port() -> Iterator[int]:
    """A port that takes no connection and refuses none."""
    with socket.socket() as listening, socket.socket() as first, socket.socket() as second:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for filling in (first, second):
            filling.setblocking(False)
            filling.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


@pytest.mark.parametrize("port", [closed_port, full_port], ids=["refused", "not taken"])
@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_an_endpoint_that_is_down_is_given_up_long_before_the_deadline(
    name: str, port: Callable[[], Any], fake_model: FakeModel
) -> None:
    """F73: three attempts, one line."""
    with port() as number:
        spec = ModelSpec(endpoint=name, model=MODEL, base_url=f"http://127.0.0.1:{number}", key=KEY, timeout=3600)
        model = provider(spec, environment={}, output_modes=KnownOutputModes())
        began = time.monotonic()
        with pytest.raises(Unreachable, match="no connection"):
            model.ask(PROMPT)
    assert time.monotonic() - began < 60, "five seconds, and what a busy machine adds"


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_name_that_does_not_resolve_is_told(name: str, fake_model: FakeModel) -> None:
    """F73."""
    spec = ModelSpec(endpoint=name, model=MODEL, base_url="http://no-such-host.invalid", key=KEY)
    with pytest.raises(Unreachable, match="no connection"):
        provider(spec, environment={}, output_modes=KnownOutputModes()).ask(PROMPT)


def test_this_machine_is_not_asked_through_a_proxy(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
    assert asking.ask().stop is EndReason.END


def test_a_certificate_that_nobody_vouches_for_is_the_cause_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """F87: what a machine without CA certificates gets from every endpoint."""
    with FakeModel(certificate=CERTIFICATES / "loopback.pem") as fake:
        for name in ("anthropic", "openai"):
            failed = failure(Asking(name, fake))
            assert type(failed) is Unreachable
            assert "certificate" in failed.message
            assert "ca-certificates" in failed.hint
        assert not fake.asked
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "loopback.pem"))
        assert Asking("openai", fake).ask().stop is EndReason.END


def test_certificates_that_are_not_there_are_told(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """F87."""
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    failed = failure(asking)
    assert "CA certificates" in failed.message
    assert "SSL_CERT_FILE" in failed.hint


def test_tls_where_there_is_none_is_told(fake_model: FakeModel) -> None:
    asking = Asking("openai", fake_model)
    spec = ModelSpec(endpoint="openai", model=MODEL, base_url=asking.url.replace("http:", "https:"), key=KEY)
    with pytest.raises(Unreachable, match="TLS"):
        provider(spec, environment={}, output_modes=KnownOutputModes()).ask(PROMPT)


# Ctrl-C and a connection that breaks while it is written to.

_ASKS = """
import signal
from omcli.llm.model import Prompt
from omcli.providers.resolve import ModelSpec, provider
from tests.fake_provider import KnownOutputModes
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
model = provider(
    ModelSpec(endpoint="openai", model="m", base_url=URL, key="k", timeout=300),
    environment={},
    output_modes=KnownOutputModes(),
)
prompt = Prompt(system="s", content=("x" * 20_000_000,) if LARGE else ("x",), schema={}, name="n")
print("asking", flush=True)
try:
    model.ask(prompt)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def asks(url: str, *, large: bool = False) -> subprocess.Popen[str]:
    program = _ASKS.replace("URL", repr(url)).replace("LARGE", str(large))
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_ctrl_c_ends_an_ask_at_once(fake_model: FakeModel) -> None:
    """F93."""
    fake_model.always(Act(hang=True))
    with asks(fake_model.url) as asking:
        until(lambda: bool(fake_model.asked))
        asking.send_signal(signal.SIGINT)
        said, _ = asking.communicate(timeout=50)  # the endpoint lets go after a minute
    assert said.splitlines() == ["asking", "interrupted"]


def test_a_connection_that_breaks_under_a_large_prompt_does_not_end_the_program() -> None:
    """SIGPIPE ends `om log | head` quietly; it must not end an ask."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(5)
        listening.settimeout(120)
        with asks(f"http://127.0.0.1:{listening.getsockname()[1]}", large=True) as asking:
            for _ in range(3):
                listening.accept()[0].close()  # before anything is sent: the second piece that is goes to nobody
            _, told = asking.communicate(timeout=120)
    assert asking.returncode == 1
    assert "Unreachable" in told


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def test_a_response_larger_than_any_reply_is_broken_off(asking: Asking) -> None:
    """F79, XA4: whoever answers may not fill the memory, and is not asked for the same again."""
    asking.fake.always(Act(body='{"a": "' + "x" * (17 << 20) + '"}'), times=3)
    with pytest.raises(Unusable, match="more than 16777216 bytes"):
        asking.ask()
    assert len(asking.fake.asked) == 1


@pytest.mark.parametrize("size", [2 << 20, 64 << 20])
def test_it_is_the_decoded_bytes_that_count(asking: Asking, size: int) -> None:
    """XA4: 65 kB of gzip are 64 MB; with an output limit of 1,000 tokens, 313 kB are the most."""
    asking.fake.always(Act(body='{"a": "' + "x" * size + '"}', is_compressed=True), times=3)
    with pytest.raises(Unusable, match="more than 326144 bytes"):
        asking.ask(replace(PROMPT, max_output=1_000))
    assert len(asking.fake.asked) == 1


@pytest.mark.parametrize("prompt", [PROMPT, LARGE], ids=["whole", "streamed"])
def test_a_compressed_response_is_read(asking: Asking, prompt: Prompt) -> None:
    """XA4."""
    asking.fake.then(Act(is_compressed=True))
    assert json.loads(asking.ask(prompt).text)["observations"]


def test_an_encoding_that_was_not_asked_for_is_refused(asking: Asking) -> None:
    """XA4: what httpx2 would decode at once."""
    asking.fake.then(Act(headers={"content-encoding": "br"}))
    with pytest.raises(NotAModel):
        asking.ask()
