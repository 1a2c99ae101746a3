"""What real clients pass to hooks, and what they are answered. `python -m tests.clients --record` records it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omcli.clients.events import EVENTS, Moment, call
from tests.clients.recording import HOME, RECORDED
from tests.conftest import Om
from tests.e2e.transcripts import Talk

FILES = sorted(RECORDED.glob("*/*.json"))
FACT = "We decided that the ferry office listens on port 4711."
OTHER = "5d0c6e0a-0000-4000-8000-0000000000cc"


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_recorded_call_is_understood(path: Path) -> None:
    given = json.loads(path.read_text())
    asked = call(path.parent.name, given)
    assert asked.session == given["session_id"]
    assert asked.transcript == given["transcript_path"]
    assert asked.folder == f"{HOME}/harbour"
    assert asked.prompt == given.get("prompt")
    assert asked.follows_compact == path.stem.endswith("-compact")


@pytest.mark.parametrize("client", sorted({path.parent.name for path in FILES}))
def test_every_moment_that_a_client_knows_was_recorded(client: str) -> None:
    seen = {call(client, json.loads(path.read_text())).moment for path in FILES if path.parent.name == client}
    assert seen >= {Moment.START, Moment.STOP, Moment.COMPACT}
    assert set(EVENTS[client].values()) - seen <= {Moment.TOOL, Moment.END}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_recorded_call_is_answered_in_the_form_of_its_client(om: Om, path: Path) -> None:
    """S0.35, S1.10, S2.42."""
    folder = om.home / "harbour"
    folder.mkdir()
    om("observe", "-q", stdin=Talk(session=OTHER, cwd=str(folder)).user(FACT).assistant("All right.").text())
    client, text = path.parent.name, path.read_text().replace(HOME, str(om.home))
    asked = call(client, json.loads(text))
    ended = om("hook", client, stdin=text)
    if asked.moment is Moment.START:
        answer = json.loads(ended.stdout)
        if client in ("pi", "opencode"):
            said = answer.pop("context")
        else:
            event, said = answer["hookSpecificOutput"].values()
            assert (event, list(answer)) == (asked.event, ["hookSpecificOutput"])
        assert FACT in said
    elif (client, asked.moment) == ("pi", Moment.COMPACT):
        assert json.loads(ended.stdout) == {"compact": True}
    else:
        assert ended.stdout == ""
