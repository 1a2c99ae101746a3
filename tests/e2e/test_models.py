"""`om observe` with a model behind a wire, a program or a script: what is sent, and what becomes of failures."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from omcli.llm.model import OutputMode
from tests.conftest import Om
from tests.fake_provider import KEY, Act, FakeModel

LINES = (
    "The ferry to Spiekeroog leaves at 15:40.",
    "Noted: the harbour office confirms 15:40 for tonight.",
    "My bicycle is in the shed behind the old lighthouse.",
)
WIRES = ("anthropic", "openai")


def talk(om: Om, *lines: str) -> Path:
    said = lines or LINES
    roles = ("user", "assistant")
    messages = (
        {"role": roles[at % 2], "content": line, "timestamp": f"2026-02-10T14:{at:02}:00Z"}
        for at, line in enumerate(said)
    )
    return om.write("talk.jsonl", "".join(f"{json.dumps(message)}\n" for message in messages))


def at(fake: FakeModel, wire: str, **more: str) -> Mapping[str, str]:
    """The environment of somebody with a key who chose its provider, whose endpoint is the fake one."""
    names = {"anthropic": "ANTHROPIC", "openai": "OPENAI"}
    url = fake.root if wire == "anthropic" else fake.url
    return {f"{names[wire]}_API_KEY": KEY, f"{names[wire]}_BASE_URL": url, "OM_OBSERVER_PROVIDER": wire, **more}


@pytest.mark.parametrize("wire", WIRES)
def test_a_provider_and_its_key_are_all_a_model_needs(om: Om, fake_model: FakeModel, wire: str) -> None:
    """S1.6, XA3: the cheap model of the chosen provider observes."""
    seen = om("observe", talk(om), env=at(fake_model, wire)).stdout
    [asked] = fake_model.asked
    assert asked.body["model"] == {"anthropic": "claude-haiku-4-5", "openai": "gpt-5-mini"}[wire]
    assert all(line in asked.text for line in LINES)
    assert not any(line in asked.system for line in LINES)
    assert all(line in seen for line in LINES)


def test_no_schema_that_is_sent_has_what_a_grammar_stumbles_over(om: Om, fake_model: FakeModel) -> None:
    """T26, F41: no `\\\\d`, no lengths; every field required, no further ones."""
    om("observe", talk(om), env=at(fake_model, "openai"))
    schema = fake_model.asked[0].schema

    def check(part: object) -> None:
        if isinstance(part, dict):
            assert not {"minLength", "maxLength", "maxItems", "minItems"} & part.keys()
            assert "\\d" not in str(part.get("pattern"))
            if part.get("type") == "object":
                assert part["additionalProperties"] is False
                assert set(part["required"]) == set(part["properties"])
            for inner in part.values():
                check(inner)
        elif isinstance(part, list):
            for inner in part:
                check(inner)

    check(schema)


# Anthropic's SDK takes a second to import: what the wires have in common is tried on one of them.
_FAILURES: list[tuple[str, Act, int, str]] = [
    ("openai", Act(status=401, error=f"no such key {KEY}"), 77, "no such key"),
    ("openai", Act(status=402, error="no credit"), 77, "no credit"),
    ("anthropic", Act(status=403, error="not for you"), 77, "not for you"),
    ("openai", Act(status=404, error="model: gone"), 78, "has no model"),
    ("openai", Act(html=True), 69, "not a model endpoint"),
    ("openai", Act(error="the model is on strike"), 69, "on strike"),
    ("anthropic", Act(text="", stop="refusal"), 69, ""),
    ("openai", Act(text="", stop="refusal"), 69, ""),
    ("openai", Act(status=503, headers={"retry-after-ms": "10"}), 69, "503"),
]


@pytest.mark.parametrize(("wire", "act", "code", "said"), _FAILURES, ids=[f"{f[0]}-{f[3]}" for f in _FAILURES])
def test_a_failure_is_told_in_a_line_and_loses_nothing(
    om: Om, fake_model: FakeModel, wire: str, act: Act, code: int, said: str
) -> None:
    """F42, F76, F77, F78, F79, F80, S3.17: the exit code, one line, no key; the messages wait for the next run."""
    fake_model.always(act, 20)
    failed = om("observe", talk(om), env=at(fake_model, wire, OM_OBSERVER_FALLBACK="none"), code=code)
    assert said in failed.stderr
    assert KEY not in failed.stderr
    assert failed.stdout == ""
    fake_model.acts.clear()
    seen = om("observe", talk(om), env=at(fake_model, wire)).stdout
    assert all(line in seen for line in LINES)


@pytest.mark.parametrize(("wire", "variable"), [("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")])
def test_a_missing_key_is_said_before_any_work(om: Om, wire: str, variable: str) -> None:
    """F75, S3.17."""
    failed = om("observe", "--observer", wire, talk(om), env={"OM_OBSERVER_FALLBACK": "none"}, code=77)
    assert variable in failed.stderr


def test_an_endpoint_that_is_down_is_not_waited_for(om: Om) -> None:
    """F73: refused, three attempts, exit 69."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        env = {"OM_OBSERVER_BASE_URL": url, "OM_OBSERVER_FALLBACK": "none", "OM_PROVIDER_TIMEOUT": "3600"}
        failed = om("observe", "--model", "ollama/qwen2.5:7b", talk(om), env=env, code=69)
    assert "no connection" in failed.stderr


@pytest.mark.parametrize("act", [Act(hang=True), Act(trickle=0.2)], ids=["silent", "a byte now and then"])
def test_an_endpoint_that_never_finishes_is_left_at_the_deadline(om: Om, fake_model: FakeModel, act: Act) -> None:
    """F74."""
    fake_model.always(act)
    env = at(fake_model, "openai", OM_PROVIDER_TIMEOUT="1", OM_OBSERVER_FALLBACK="none")
    failed = om("observe", talk(om), env=env, code=69)
    assert "within 1 s" in failed.stderr


def test_an_output_mode_that_worked_is_remembered_from_one_run_to_the_next(om: Om, fake_model: FakeModel) -> None:
    """F83."""
    fake_model.refused_formats = {OutputMode.JSON_SCHEMA: 500}
    env = at(fake_model, "openai")
    om("observe", talk(om), env=env)
    om("observe", talk(om, *LINES, "And the ferry back leaves at 18:10."), env=env)
    assert [asked.output_mode for asked in fake_model.asked] == [
        OutputMode.JSON_SCHEMA,
        OutputMode.JSON_OBJECT,
        OutputMode.JSON_OBJECT,
    ]


def test_a_large_reply_is_streamed_and_one_that_breaks_is_asked_for_again(om: Om, fake_model: FakeModel) -> None:
    """F81, F85."""
    fake_model.then(Act(mid_stream_error="overloaded"))
    seen = om("observe", talk(om), env=at(fake_model, "anthropic", OM_OBSERVER_MAX_OUTPUT="60000")).stdout
    assert [asked.is_streamed for asked in fake_model.asked] == [True, True]
    assert all(line in seen for line in LINES)


def test_what_a_call_took_and_costs_is_in_the_ledger(om: Om, fake_model: FakeModel) -> None:
    om("observe", talk(om), env=at(fake_model, "openai"))
    total = om("usage", "--json").document["total"]
    assert (total["calls"], total["input_tokens"], total["cached_tokens"], total["output_tokens"]) == (1, 100, 40, 10)
    assert total["cost"] == pytest.approx((60 * 0.25 + 40 * 0.025 + 10 * 2.00) / 1_000_000)


def test_ctrl_c_in_the_middle_of_an_ask_leaves_nothing_half_done(om: Om, fake_model: FakeModel) -> None:
    """F93."""
    fake_model.then(Act(hang=True))
    with om.start("observe", talk(om), env=at(fake_model, "openai")) as observing:
        until(lambda: bool(fake_model.asked))
        observing.send_signal(signal.SIGINT)
        said, told = observing.communicate(timeout=60)
    assert observing.returncode == 130
    assert b"Traceback" not in told
    assert said == b""
    seen = om("observe", talk(om), env=at(fake_model, "openai")).stdout
    assert all(line in seen for line in LINES)


def test_a_program_is_a_model(om: Om) -> None:
    """The simplest one there is: it reads the prompt and writes the reply."""
    reply = om.write("reply.json", json.dumps({"observations": [], "used": [], "current_task": None, "next_step": None,
                                               "title": None}))  # fmt: skip
    program = om.write(
        "model.py",
        f"import pathlib, sys\npathlib.Path({str(om.folder / 'seen')!r}).write_text(sys.stdin.read())\n"
        f"print(pathlib.Path({str(reply)!r}).read_text())\n",
    )
    line = shlex.join([sys.executable, str(program)])
    om("observe", "--model", f"command/{line}", talk(om))
    assert all(said in (om.folder / "seen").read_text() for said in LINES)


def test_a_script_is_a_model(om: Om) -> None:
    om.write("replies.json", '"echo"')
    seen = om("observe", "--model", "scripted/replies.json", talk(om)).stdout
    assert all(line in seen for line in LINES)
    [asked] = [json.loads(line) for line in (om.folder / "replies.json.asked.jsonl").read_text().splitlines()]
    assert asked["name"] == "observations"


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
