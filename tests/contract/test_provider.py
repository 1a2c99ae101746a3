"""What every provider promises: `memory.model.Provider`, for both wires, a program and a script."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from omcli.base.errors import Unreachable, Unusable
from omcli.base.record import replace
from omcli.llm.model import EndReason, Picture, Prompt, Provider
from omcli.providers.resolve import ModelSpec, provider
from tests.fake_provider import KEY, Act, FakeModel, KnownOutputModes

SCHEMA = {
    "type": "object",
    "properties": {"observations": {"type": "array", "items": {"type": "object"}}},
    "required": ["observations"],
    "additionalProperties": False,
}
TALK = (
    "Already recorded: nothing.",
    "m1 2026-02-10 14:32 user: the tide table is in ``docs/tide.md``\nand it is wrong\nm2 14:33 assistant: höher",
)
PROMPT = Prompt(system="Keep what matters.", content=TALK, schema=SCHEMA, name="observations")
PICTURE = Picture(media_type="image/png", data=b"\x89PNG" + bytes(641_996))
REPLY = '{"observations": [{"text": "größer\\n\\"quoted\\""}]}'
_PROGRAM = """
import json, pathlib, sys, time
sys.path.insert(0, ROOT)
from omcli.llm.model import Prompt
from omcli.providers.scripted import echo
folder = pathlib.Path(FOLDER)
text = sys.stdin.read()
acts = folder / "acts.jsonl"
lines = acts.read_text().splitlines()
act = json.loads(lines[0])
acts.write_text("\\n".join(lines[1:]))
with (folder / "seen.jsonl").open("a") as seen:
    seen.write(json.dumps(text) + "\\n")
time.sleep(act.get("sleep", 0))
if act.get("fails"):
    sys.exit("out of order\\n")
said = act.get("text")
sys.stdout.write(echo(Prompt(system="", content=(text,), schema={}, name="")) if said is None else said)
"""


class Stage(Protocol):
    """A provider and the model behind it."""

    def provider(self, *, seconds: float = 60) -> Provider:
        """The provider."""

    def says(self, *replies: str | None, fails: bool = False, sleeps: float = 0) -> None:
        """What the model says next, one reply per ask; None: the echo."""

    def seen(self) -> list[str]:
        """What it was shown, as one text per ask."""


class Endpoint:
    """A wire."""

    def __init__(self, name: str, fake: FakeModel) -> None:
        self.name, self.fake = name, fake

    def provider(self, *, seconds: float = 60) -> Provider:
        url = self.fake.root if self.name == "anthropic" else self.fake.url
        spec = ModelSpec(endpoint=self.name, model="small", base_url=url, key=KEY, timeout=seconds)
        return provider(spec, environment={}, output_modes=KnownOutputModes())

    def says(self, *replies: str | None, fails: bool = False, sleeps: float = 0) -> None:
        for reply in replies:
            self.fake.always(Act(text=reply, status=503 if fails else 200, hang=bool(sleeps)), 3 if fails else 1)

    def seen(self) -> list[str]:
        return [
            f"{asked.system}\n{asked.text}\n{json.dumps(asked.schema, separators=(',', ':'))}"
            for asked in self.fake.asked
        ]


class Program:
    """A program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "model.py"
        root = str(Path(__file__).parents[2])
        self.path.write_text(_PROGRAM.replace("ROOT", repr(root)).replace("FOLDER", repr(str(folder))))

    def provider(self, *, seconds: float = 60) -> Provider:
        line = shlex.join([sys.executable, str(self.path)])
        return provider(
            ModelSpec(endpoint="command", model=line, timeout=seconds), environment={}, output_modes=KnownOutputModes()
        )

    def says(self, *replies: str | None, fails: bool = False, sleeps: float = 0) -> None:
        with (self.folder / "acts.jsonl").open("a") as acts:
            for reply in replies:
                acts.write(json.dumps({"text": reply, "fails": fails, "sleep": sleeps}) + "\n")

    def seen(self) -> list[str]:
        return [json.loads(line) for line in (self.folder / "seen.jsonl").read_text().splitlines()]


class Script:
    """A script."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "replies.json"
        self.replies: list[object] = []

    def provider(self, *, seconds: float = 60) -> Provider:
        spec = ModelSpec(endpoint="scripted", model=str(self.path), timeout=seconds)
        return provider(spec, environment={}, output_modes=KnownOutputModes())

    def says(self, *replies: str | None, fails: bool = False, sleeps: float = 0) -> None:
        error = {"error": "unreachable"} if fails else {}
        self.replies += [{"text": "echo" if reply is None else reply, "sleep": sleeps, **error} for reply in replies]
        self.path.write_text(json.dumps(self.replies))

    def seen(self) -> list[str]:
        asked = (json.loads(line) for line in self.path.with_name("replies.json.asked.jsonl").read_text().splitlines())
        return [
            "\n".join([one["system"], *map(str, one["content"]), json.dumps(one["schema"], separators=(",", ":"))])
            for one in asked
        ]


@pytest.fixture(params=["anthropic", "openai", "command", "scripted"])
def stage(request: pytest.FixtureRequest, tmp_path: Path, fake_model: FakeModel) -> Stage:
    stages: dict[str, Callable[[], Stage]] = {
        "command": lambda: Program(tmp_path),
        "scripted": lambda: Script(tmp_path),
    }
    return stages.get(request.param, lambda: Endpoint(request.param, fake_model))()


def test_the_reply_comes_back_word_for_word(stage: Stage) -> None:
    stage.says(REPLY)
    reply = stage.provider().ask(PROMPT)
    assert (reply.text, reply.stop) == (REPLY, EndReason.END)
    assert reply.model


def test_a_model_is_shown_the_rules_everything_in_order_and_the_schema(stage: Stage) -> None:
    stage.says(REPLY)
    stage.provider().ask(PROMPT)
    [seen] = stage.seen()
    places = [seen.index(part) for part in ("Keep what matters.", *TALK)]
    assert places == sorted(places)
    assert json.dumps(SCHEMA, separators=(",", ":")) in seen


def test_every_ask_has_a_reply_of_its_own(stage: Stage) -> None:
    replies = [f'{{"observations": [{{"text": "{word}"}}]}}' for word in ("ebb", "flood")]
    stage.says(*replies)
    asked = stage.provider()
    assert [asked.ask(PROMPT).text for _ in replies] == replies
    assert len(stage.seen()) == 2


def test_an_echo_covers_every_message_it_is_shown(stage: Stage) -> None:
    stage.says(None)
    rows = json.loads(stage.provider().ask(PROMPT).text)["observations"]
    assert [row["sources"] for row in rows] == [["m1"], ["m2"]]
    assert rows[0]["text"] == "the tide table is in ``docs/tide.md`` and it is wrong"
    assert [row["at"] for row in rows] == ["2026-02-10 14:32", "2026-02-10 14:33"]


def test_a_reply_of_nothing_is_a_failure(stage: Stage) -> None:
    """V7, T13: blank is not "empty"."""
    stage.says(*["  \n"] * 5)
    with pytest.raises(Unusable):
        stage.provider().ask(PROMPT)


def test_a_model_that_fails_is_told_of_in_one_line(stage: Stage) -> None:
    """F73, F78, S3.17: one line of at most 200 characters, exit code 69, and nothing of key or prompt in it."""
    stage.says("x", fails=True)
    with pytest.raises(Unreachable) as failed:
        stage.provider().ask(PROMPT)
    told = failed.value.message
    assert len(told) <= 200
    assert not re.search(r"[\n\r]", told)
    assert KEY not in told
    assert "tide" not in told
    assert failed.value.exit_code == 69


def test_a_model_that_is_silent_is_given_up_at_the_deadline(stage: Stage) -> None:
    """F74: explicit time-outs, always."""
    stage.says(REPLY, sleeps=300)
    asked = stage.provider(seconds=1)
    began = time.monotonic()
    with pytest.raises(Unreachable, match="within 1 s"):
        asked.ask(PROMPT)
    assert time.monotonic() - began < 60


def test_pictures_become_words_where_a_model_takes_none(stage: Stage) -> None:
    """S2.20: base64 never stands in the text of a prompt."""
    stage.says(REPLY)
    asked = stage.provider()
    asked.ask(replace(PROMPT, content=("Before.", PICTURE, "After.")))
    [seen] = stage.seen()
    assert ("[image png 627 KB]" in seen) is not asked.takes_images
    assert "iVBOR" not in seen


def test_a_provider_says_who_it_is(stage: Stage) -> None:
    stage.says(REPLY)
    asked = stage.provider()
    assert asked.name in {"anthropic", "openai", "command", "scripted"}
    assert asked.model
    assert "/" not in asked.model
