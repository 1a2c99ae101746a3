"""`om observe` over HTTP, on both wires, with endpoints that fail in every way: what it ends with, and what it says."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from omcli.llm.model import OutputMode
from tests.command_line import Ended
from tests.conftest import Om
from tests.e2e.contents import stored
from tests.e2e.scripts import calls, pending, rows
from tests.e2e.transcripts import Talk, tide_story
from tests.fake_provider import KEY, Act, FakeModel
from tests.unit.text.test_redaction import FAKES

WIRES = ("anthropic", "openai")
KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
SOON = {"retry-after": "0.02"}
NOTHING = '{"observations": []}'


@dataclass(frozen=True, slots=True)
class Machine:
    """A user's machine, whose model answers at a local address."""

    om: Om
    fake: FakeModel
    wire: str

    @property
    def env(self) -> dict[str, str]:
        """The variables that say where the model is."""
        return {
            KEYS[self.wire]: KEY,
            "OM_OBSERVER_PROVIDER": self.wire,
            "ANTHROPIC_BASE_URL": self.fake.root,
            "OPENAI_BASE_URL": self.fake.url,
            "OM_PROVIDER_TIMEOUT": "20",
        }

    def observe(self, *arguments: str | Path, code: int | None = 0, env: Mapping[str, str] | None = None) -> Ended:
        """Takes the story in with the model."""
        transcript = self.om.write("t.jsonl", tide_story().text())
        return self.om("observe", transcript, *arguments, env={**self.env, **(env or {})}, code=code)

    def fails(self, *acts: Act, code: int, env: Mapping[str, str] | None = None) -> str:
        """What a user is told of a failure, after a look at what has to hold for each."""
        self.fake.then(*acts)
        run = self.observe(env=env, code=code)
        errors = [line for line in run.stderr.splitlines() if line.startswith("om: error: ")]
        assert len(errors) == 1
        assert len(errors[0]) < 400
        assert KEY not in run.stderr
        assert "8 messages pending" in run.stderr
        assert run.stdout == ""
        numbers = self.om("status", "--json").document
        assert (numbers["observations"], numbers["pending"]) == (0, 8)
        return run.stderr


@pytest.fixture(params=WIRES)
def machine(request: pytest.FixtureRequest, om: Om, fake_model: FakeModel) -> Machine:
    """On each wire."""
    return Machine(om, fake_model, request.param)


@pytest.fixture
def on_chat(om: Om, fake_model: FakeModel) -> Machine:
    """On the wire that most servers speak."""
    return Machine(om, fake_model, "openai")


@pytest.fixture
def on_messages(om: Om, fake_model: FakeModel) -> Machine:
    """On Anthropic's."""
    return Machine(om, fake_model, "anthropic")


# It works


def test_the_model_of_a_chosen_provider_observes(machine: Machine) -> None:
    """S1.6, S3.5, XA3, C15: the cheap model of that endpoint, unless one is named, in the ledger with its tokens."""
    machine.observe()
    (asked,) = machine.fake.asked
    assert (asked.wire, asked.key) == ({"anthropic": "messages", "openai": "chat"}[machine.wire], KEY)
    assert asked.body["model"] == {"anthropic": "claude-haiku-4-5", "openai": "gpt-5-mini"}[machine.wire]
    assert "temperature" not in asked.body
    assert {row["source"] for row in rows(machine.om)} == {"model", "rules"}
    assert pending(machine.om) == 0
    total = calls(machine.om)
    assert (total["calls"], total["input_tokens"], total["output_tokens"], total["cached_tokens"]) == (1, 100, 10, 40)
    assert 0 < total["cost"] < 0.01
    assert KEY not in stored(machine.om.place).decode("latin-1")


@pytest.mark.parametrize("command", ["observe", "tick", "consolidate", "compact", "python"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_key_alone_turns_no_model_on(om: Om, fake_model: FakeModel, wire: str, command: str) -> None:
    """XA3, S1.6, D15: rules, unless a model was chosen; a key may be there for something else."""
    address = {"ANTHROPIC_BASE_URL": fake_model.root, "OPENAI_BASE_URL": fake_model.url}
    env = {KEYS[wire]: KEY, **address, "OM_OBSERVE_TOKENS": "1", "OM_REFLECT_TOKENS": "1"}
    transcript = om.write("t.jsonl", tide_story().text())
    om("observe", *(("--later",) if command != "observe" else ()), transcript, env=env)
    if command == "python":
        session = "5d0c6e0a-0000-4000-8000-000000000001"
        program = f"from omcli import ContextCompressor; print(ContextCompressor({session!r}).flush().error)"
        environment = {**os.environ, **env, "OM_DB": str(om.place)}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == "None\n"
    elif command == "compact":
        om("compact", transcript, env=env, code=None)
    elif command != "observe":
        om(command, *(("--no-places",) if command == "consolidate" else ()), env=env)
    assert fake_model.asked == []
    assert {row["source"] for row in rows(om)} <= {"rules"}


def test_an_address_without_a_model_is_an_error(on_chat: Machine) -> None:
    """XA3: half a choice is not silently left out."""
    run = on_chat.om("observe", "--base-url", on_chat.fake.url, stdin=tide_story().text(), code=78)
    assert "no model given for http://127.0.0.1" in run.stderr
    assert on_chat.fake.asked == []


def test_rules_are_kept_to_where_they_are_asked_for(on_chat: Machine) -> None:
    """A key in the environment may be there for something else."""
    on_chat.observe("--observer", "rules")
    assert on_chat.fake.asked == []


def test_flags_name_a_model_an_address_and_a_provider(om: Om, fake_model: FakeModel) -> None:
    """A server on this machine needs no key; the keys of others are not sent to it."""
    transcript = om.write("t.jsonl", tide_story().text())
    named = ("--observer", "ollama", "--model", "qwen2.5:7b", "--base-url", fake_model.url)
    om("observe", transcript, *named, env={"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY})
    (asked,) = fake_model.asked
    assert asked.body["model"] == "qwen2.5:7b"
    assert KEY not in json.dumps(dict(asked.headers))
    (entry,) = om("usage", "--by", "model", "--json").document["usage"]
    assert entry["model"] == "ollama/qwen2.5:7b"


def test_no_message_goes_to_another_provider_than_the_one_named(om: Om, fake_model: FakeModel) -> None:
    """OpenRouter names OpenAI's models `openai/…`."""
    named = {"OM_OBSERVER_PROVIDER": "openrouter", "OM_OBSERVER_MODEL": "openai/gpt-4o"}
    keys = {"OPENROUTER_API_KEY": KEY, "OPENAI_API_KEY": "of openai", "OM_OBSERVER_BASE_URL": fake_model.url}
    om("observe", om.write("t.jsonl", tide_story().text()), env=named | keys)
    (asked,) = fake_model.asked
    assert asked.body["model"] == "openai/gpt-4o"
    assert KEY in json.dumps(dict(asked.headers))
    (entry,) = om("usage", "--by", "model", "--json").document["usage"]
    assert entry["model"] == "openrouter/openai/gpt-4o"


def test_a_file_and_variables_name_it_as_well(om: Om, fake_model: FakeModel) -> None:
    """T70: `OM_OBSERVER_…`, and the same keys in a file; what is said by flags is stronger."""
    transcript = om.write("t.jsonl", tide_story().text())
    config = om.write(
        "c.toml", f'[observer]\nprovider = "lmstudio"\nmodel = "of-file"\nbase_url = "{fake_model.url}"\n'
    )
    om("observe", transcript, "--config", config)
    om(
        "reflect",
        "--config",
        config,
        env={"OM_REFLECTOR_MODEL": "lmstudio/of-variable", "OM_REFLECTOR_BASE_URL": fake_model.url},
    )
    assert [asked.body["model"] for asked in fake_model.asked][:2] == ["of-file", "of-variable"]


def test_a_slow_model_is_followed_by_the_stream(machine: Machine) -> None:
    """F85: where much may be answered, the reply comes piece by piece."""
    machine.observe(env={"OM_OBSERVER_MAX_OUTPUT": "100000"})
    assert machine.fake.asked[0].is_streamed
    assert pending(machine.om) == 0


# Answers that are none


@pytest.mark.parametrize(
    ("act", "told", "asks"),
    [
        (Act(html=True), "not a model endpoint", 1),
        (Act(error="the quota department is closed"), "the quota department is closed", 1),
        (Act(is_null=True), "content", 1),
        (Act(text="", stop="refusal"), "declined", 1),
        (Act(text="  "), "empty", None),
        (Act(body="]["), "not a model endpoint", 1),
    ],
    ids=["a web page", "an error with 200", "no content", "refusal", "blank", "no JSON"],
)  # fmt: skip
def test_a_success_that_holds_no_reply_is_a_failure(machine: Machine, act: Act, told: str, asks: int | None) -> None:
    """F42, F79, F80, T13: exit 69, in the endpoint's own words where it has any; it is in the ledger as a failure."""
    assert told in machine.fails(*[act] * 6, code=69)
    assert asks is None or len(machine.fake.asked) == asks
    total = calls(machine.om)
    assert total["calls"] == 1
    assert total["failed"] == 1


def test_a_reply_cut_off_by_its_length_halves_the_batch(machine: Machine) -> None:
    """F4: as the wires say it, `length` and `max_tokens`."""
    cut = Act(text='{"observations": [{"text": "tid', stop="length")
    said = machine.fails(*[cut] * 9, code=69)
    assert "cut off" in said
    sizes = [asked.text.count("\nm") for asked in machine.fake.asked]
    assert sizes[0] == 8
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) <= 4
    machine.fake.acts.clear()
    machine.fake.then(cut)
    machine.observe()
    assert pending(machine.om) == 0


def test_a_stream_that_fails_half_way_is_asked_for_once_more(machine: Machine) -> None:
    """F81: nothing of the first half is kept."""
    machine.fake.then(Act(mid_stream_error="the harbour is overloaded"))
    machine.observe(env={"OM_OBSERVER_MAX_OUTPUT": "100000"})
    assert len(machine.fake.asked) == 2
    assert pending(machine.om) == 0
    assert len([row for row in rows(machine.om) if "Always use metric" in row["text"]]) == 1


def test_a_stream_that_fails_again_is_a_failure(on_messages: Machine) -> None:
    """F81."""
    broken = Act(mid_stream_error="the harbour is overloaded")
    told = on_messages.fails(broken, broken, code=69, env={"OM_OBSERVER_MAX_OUTPUT": "100000"})
    assert "broke off" in told
    assert len(on_messages.fake.asked) == 2


@pytest.mark.parametrize("status", [402, 403])
def test_what_is_not_paid_for_or_not_allowed_is_exit_77(on_chat: Machine, status: int) -> None:
    """F76."""
    assert "no good" in on_chat.fails(Act(status=status, error="no good"), code=77)
    assert len(on_chat.fake.asked) == 1


def test_a_key_that_is_not_accepted_is_exit_77_and_not_tried_again(machine: Machine) -> None:
    """F76: it says where the key comes from, and never what it is."""
    told = machine.fails(Act(status=401, error=f"the key {KEY} is no good"), code=77)
    assert f"the key comes from {KEYS[machine.wire]}" in told
    assert len(machine.fake.asked) == 1
    status = machine.om("status").stdout
    assert "no good" in status
    assert KEY not in status


def test_an_unknown_model_is_exit_78_and_says_who_named_it(machine: Machine) -> None:
    """F77."""
    told = machine.fails(
        Act(status=404, error="model not found: tiny"), code=78, env={"OM_OBSERVER_MODEL": f"{machine.wire}/tiny"}
    )
    assert "has no model 'tiny'" in told
    assert "OM_OBSERVER_MODEL" in told
    assert len(machine.fake.asked) == 1


def test_an_address_with_nothing_there_is_exit_78(on_chat: Machine) -> None:
    """F77: a 404 that speaks of no model."""
    on_chat.om.write("t.jsonl", tide_story().text())
    run = on_chat.om("observe", "t.jsonl", "--base-url", f"{on_chat.fake.root}/v2", env=on_chat.env, code=78)
    assert "check the base URL" in run.stderr


def test_a_busy_endpoint_is_waited_for_as_long_as_it_says(machine: Machine) -> None:
    """F78: 429 with `retry-after`; the call is one in the ledger, however often it was sent."""
    machine.fake.then(Act(status=429, error="slow down", headers={"retry-after": "1"}))
    begun = time.monotonic()
    machine.observe()
    assert time.monotonic() - begun > 1
    assert len(machine.fake.asked) == 2
    assert (pending(machine.om), calls(machine.om)["calls"]) == (0, 1)


def test_a_wait_past_the_deadline_is_not_begun(on_chat: Machine) -> None:
    """F78: within the time limit."""
    told = on_chat.fails(Act(status=429, error="slow down", headers={"retry-after": "600"}), code=69)
    assert "slow down" in told
    assert len(on_chat.fake.asked) == 1


@pytest.mark.parametrize(("wire", "status"), [("openai", 500), ("openai", 503), ("anthropic", 529)])
def test_an_endpoint_out_of_order_is_asked_three_times(om: Om, fake_model: FakeModel, wire: str, status: int) -> None:
    """F78: exit 69."""
    machine = Machine(om, fake_model, wire)
    told = machine.fails(*[Act(status=status, error="out of order", headers=SOON)] * 4, code=69)
    assert "out of order" in told
    assert f"HTTP {status}" in told
    assert len(fake_model.asked) == 3


def test_what_an_endpoint_says_does_nothing_to_a_terminal(on_chat: Machine) -> None:
    """F40: one line, cut, without control characters or secrets; and so it is kept."""
    secret = FAKES["GitHub, personal"].secret
    said = f"\x1b[31mno\nway\r\x07 {secret} " + "x" * 5_000
    told = on_chat.fails(Act(status=400, error=said), code=69)
    status = on_chat.om("status").stdout
    assert not [letter for letter in told + status if letter < " " and letter != "\n"]
    assert secret not in told + status
    assert "way" in status


def test_a_prompt_too_long_for_the_model_is_halved(machine: Machine) -> None:
    """F82: 400, and a batch of half the size."""
    machine.fake.then(Act(status=400, error="This model's maximum context length is 10 tokens, prompt is too long"))
    machine.observe()
    sizes = [asked.text.count("\nm") for asked in machine.fake.asked]
    assert sizes[0] == 8
    assert max(sizes[1:]) <= 5  # with what was said before
    assert pending(machine.om) == 0


# Silence


def test_an_endpoint_that_is_down_fails_long_before_the_deadline(machine: Machine) -> None:
    """F73: and one line is all that is said; messages are safe."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        addresses = {"ANTHROPIC_BASE_URL": nobody, "OPENAI_BASE_URL": f"{nobody}/v1"}
        run = machine.observe(env={**addresses, "OM_PROVIDER_TIMEOUT": "3600"}, code=69)
    assert "no connection" in run.stderr
    assert run.stderr.count("error:") == 1
    assert pending(machine.om) == 8
    machine.observe()


def test_an_endpoint_that_never_answers_is_given_up(machine: Machine) -> None:
    """F74: at `provider.timeout`."""
    told = machine.fails(Act(hang=True), code=69, env={"OM_PROVIDER_TIMEOUT": "1.5"})
    assert "no reply within 1.5 s" in told
    assert calls(machine.om)["duration_ms"] >= 1_400


def test_an_endpoint_that_answers_byte_by_byte_is_given_up_as_well(on_chat: Machine) -> None:
    """F74: what counts is the time of the whole answer."""
    told = on_chat.fails(Act(trickle=0.2), code=69, env={"OM_PROVIDER_TIMEOUT": "1.5"})
    assert "no reply within 1.5 s" in told


def test_no_certificates_are_named_as_the_cause(om: Om) -> None:
    """F87: what a machine without CA certificates gets from every endpoint."""
    certificate = Path(__file__).parents[1] / "integration" / "certificates" / "loopback.pem"
    transcript = om.write("t.jsonl", tide_story().text())
    with FakeModel(certificate=certificate) as fake:
        run = om(
            "observe",
            transcript,
            env={"OM_OBSERVER_PROVIDER": "openai", "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": fake.url},
            code=69,
        )
    assert "the certificate cannot be verified" in run.stderr
    assert "ca-certificates" in run.stderr
    assert pending(om) == 8


# What an endpoint refuses


def test_what_works_is_remembered_from_run_to_run(machine: Machine) -> None:
    """F83: a schema that an endpoint fails at is not sent to it again, by any process."""
    machine.fake.refused_formats = {OutputMode.JSON_SCHEMA: 500, OutputMode.JSON_OBJECT: 400}
    machine.observe()
    modes = [asked.output_mode for asked in machine.fake.asked]
    assert modes[0] is OutputMode.JSON_SCHEMA
    assert modes[-1] is OutputMode.PROMPT
    assert pending(machine.om) == 0
    talk = tide_story().user("The gauge stands in harbour 7.")
    machine.om("observe", machine.om.write("t.jsonl", talk.text()), env=machine.env)
    assert [asked.output_mode for asked in machine.fake.asked[len(modes) :]] == [OutputMode.PROMPT]
    machine.om(
        "observe",
        machine.om.write("t.jsonl", talk.user("Another in harbour 8.").text()),
        "--model",
        f"{machine.wire}/another",
        env=machine.env,
    )
    assert machine.fake.asked[len(modes) + 1].output_mode is OutputMode.JSON_SCHEMA


def test_a_format_that_is_taken_and_not_followed_is_left(on_chat: Machine) -> None:
    """F83: prose in place of JSON, twice; the reply is held to its form whatever was asked."""
    on_chat.fake.ignored_formats = (OutputMode.JSON_SCHEMA, OutputMode.JSON_OBJECT)
    on_chat.observe()
    assert on_chat.fake.asked[-1].output_mode is OutputMode.PROMPT
    assert pending(on_chat.om) == 0


def test_a_temperature_is_sent_where_it_is_taken(machine: Machine) -> None:
    """F84: only if somebody asks for one, and not to a model that has refused it."""
    machine.fake.refused_fields = ("temperature",)
    machine.observe(env={"OM_OBSERVER_TEMPERATURE": "0.2"})
    # The Messages wire is not sent what its newer models refuse.
    sent = [asked.body.get("temperature") for asked in machine.fake.asked]
    assert sent[-1] is None
    assert sent[:-1] in ([0.2], [])
    assert pending(machine.om) == 0


# A second model, and none


def test_a_fallback_model_is_asked_where_the_first_fails(machine: Machine) -> None:
    """S3.5: once, with the same prompt; both calls are in the ledger."""
    machine.fake.then(Act(status=400, error="not today"))
    run = machine.observe(env={"OM_OBSERVER_FALLBACK_MODEL": f"{machine.wire}/second"})
    first, second = machine.fake.asked
    assert second.body["model"] == "second"
    assert first.text == second.text
    assert "asking second" in run.stderr
    assert pending(machine.om) == 0
    assert (calls(machine.om)["calls"], calls(machine.om)["failed"]) == (2, 1)


@pytest.mark.parametrize("wire", WIRES)
def test_a_missing_key_is_said_in_one_line_before_any_work(om: Om, wire: str) -> None:
    """F75, S3.17: exit 77 naming the variable; messages are kept, and wait."""
    transcript = om.write("t.jsonl", tide_story().text())
    run = om("observe", transcript, "--observer", wire, code=77)
    first, *_ = run.stderr.splitlines()
    assert first.startswith(f"om: error: {wire} needs a key, and {KEYS[wire]}")
    assert run.stderr.count("error:") == 1
    assert "8 messages pending" in run.stderr
    assert (pending(om), rows(om)) == (8, [])
    tolerant = om("observe", transcript, "--observer", wire, "--best-effort")
    assert "om: warning: " in tolerant.stderr
    assert pending(om) == 8
    assert calls(om)["calls"] == 0
    for command in ("tick", "reflect"):
        role = "--observer" if command == "tick" else "--reflector"
        run = om(command, role, wire, code=77)
        assert run.stderr.startswith("om: error: ")
        om(command, role, wire, "--best-effort")


def test_without_a_key_the_work_is_done_by_whom_the_settings_name(om: Om, fake_model: FakeModel) -> None:
    """S3.5, S3.17: a second model, else rules where they may stand in, else it waits."""
    transcript = om.write("t.jsonl", tide_story().text())
    env = {"OM_OBSERVER_PROVIDER": "anthropic", "OM_OBSERVER_FALLBACK": "rules"}
    run = om("observe", transcript, env=env)
    assert "warning: anthropic needs a key" in run.stderr
    assert "observed by rules" in run.stderr
    assert pending(om) == 0
    assert "reflected by rules" in om("reflect", env={"OM_REFLECTOR_FALLBACK": "rules", **env}).stderr
    second = {**env, "OM_OBSERVER_FALLBACK_MODEL": "openai/second", "OPENAI_API_KEY": KEY}
    talk = tide_story().user("The gauge stands in harbour 7.")
    run = om("observe", om.write("t.jsonl", talk.text()), env={**second, "OPENAI_BASE_URL": fake_model.url})
    assert "asking second" in run.stderr
    assert [asked.body["model"] for asked in fake_model.asked] == ["second"]
    assert pending(om) == 0


def test_a_missing_key_as_json(om: Om) -> None:
    """S3.17: an error is one JSON object with its slug, on stderr."""
    transcript = om.write("t.jsonl", tide_story().text())
    run = om("observe", transcript, "--observer", "openai", "--json", code=77)
    error = json.loads(run.stderr.splitlines()[0])["error"]
    assert (error["slug"], error["exit_code"]) == ("not-allowed", 77)
    assert run.document["files"][0]["pending"] == 8


def test_a_failure_that_is_tolerated_ends_with_0(on_chat: Machine) -> None:
    """D4, D5: with `--best-effort`; with `--strict` it is an error as it is without."""
    on_chat.fake.then(*[Act(status=401, error="no good")] * 2)
    run = on_chat.observe("--best-effort")
    assert "om: warning: " in run.stderr
    assert pending(on_chat.om) == 8
    on_chat.observe("--strict", code=77)


def test_a_ctrl_c_while_an_endpoint_hangs_ends_at_once(on_chat: Machine) -> None:
    """F93: exit 130, nothing half-written."""
    on_chat.fake.then(Act(hang=True))
    transcript = on_chat.om.write("t.jsonl", tide_story().text())
    process = on_chat.om.start("observe", str(transcript), env={**on_chat.env, "OM_PROVIDER_TIMEOUT": "3600"})
    _until(lambda: bool(on_chat.fake.asked))
    process.send_signal(2)
    _, talk = process.communicate(timeout=50)  # the endpoint lets go after a minute
    assert process.returncode == 130
    assert b"Traceback" not in talk
    assert (rows(on_chat.om), pending(on_chat.om)) == ([], 8)
    on_chat.observe()
    assert pending(on_chat.om) == 0


def _until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_no_secret_is_in_any_request(machine: Machine) -> None:
    """F46: neither of the transcript nor of this machine, but for the key where it belongs."""
    talk = Talk()
    for example in FAKES.values():
        talk.user(f"We decided: {example.text}").call("Bash", {"command": example.text}).result(example.text)
    transcript = machine.om.write("t.jsonl", talk.text())
    machine.om("observe", transcript, env={**machine.env, "OM_OBSERVE_BATCH_TOKENS": "100000"})
    sent = json.dumps([asked.body for asked in machine.fake.asked])
    assert len(sent) > 10_000
    assert KEY not in sent
    for kind, example in FAKES.items():
        assert example.secret not in sent, kind
        assert json.dumps(json.dumps(example.secret)[1:-1])[1:-1] not in sent, kind


# Reflecting


def test_reflecting_fails_in_the_same_ways(on_chat: Machine) -> None:
    """F7, T48: the rows stay as they are, and the error is kept."""
    on_chat.observe("--observer", "rules")
    before = rows(on_chat.om)
    on_chat.fake.then(Act(status=401, error="no good"))
    on_chat.om("reflect", env=on_chat.env, code=77)
    on_chat.fake.then(Act(html=True))
    run = on_chat.om("reflect", env=on_chat.env, code=69)
    assert "not a model endpoint" in run.stderr
    assert rows(on_chat.om) == before
    assert calls(on_chat.om)["failed"] == 2
    on_chat.fake.then(Act(html=True))
    assert "warning" in on_chat.om("reflect", "--best-effort", env=on_chat.env).stderr


def test_a_program_is_a_model_too(om: Om) -> None:
    """The provider `command`: prompt on stdin, reply on stdout; one that fails is exit 69 with what it said."""
    transcript = om.write("t.jsonl", tide_story().text())
    program = om.write("model.sh", f"#!/bin/sh\ncat > asked.txt\necho '{NOTHING}'\n")
    program.chmod(0o755)
    om("observe", transcript, "--observer", "command", "--model", str(program))
    assert "metric units" in (om.folder / "asked.txt").read_text()
    assert pending(om) == 0
    program.write_text("#!/bin/sh\necho 'the tide is out' >&2\nexit 3\n")
    talk = tide_story().user("One more thing: the gauge stands in harbour 7.")
    run = om("observe", om.write("t.jsonl", talk.text()), "--observer", "command", "--model", str(program), code=69)
    assert "the tide is out" in run.stderr
    assert pending(om) == 1
    om("observe", "t.jsonl", "--observer", "command", "--model", "no-such-program-here", code=78)
