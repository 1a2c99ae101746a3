"""The extensions for pi and OpenCode: which calls of om they make, and what becomes of its answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from omcli.clients.events import EVENTS
from omcli.clients.install import DATA

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not on PATH")

_FAKE = """#!{python}
import json, os, signal, sys
given = json.loads(sys.stdin.read())
with open({calls!r}, "a") as stream:
    stream.write(json.dumps({{"arguments": sys.argv[1:], "given": given, "in": os.getcwd()}}) + "\\n")
answer = json.load(open({answers!r})).get(given.get("hook_event_name", "compact"), {{}})
sys.stdout.write(answer.get("prints", ""))
sys.stdout.flush()
if answer.get("hangs"):
    signal.pause()
sys.exit(answer.get("code", 0))
"""
"""An `om` that records its calls and answers from a file."""


class Extension:
    """An extension with a fake om, in a folder of its own."""

    def __init__(self, client: str, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.calls_file, self.answers = folder / "calls", folder / "answers.json"
        self.om = folder / "a folder" / "om"
        self.om.parent.mkdir()
        text = _FAKE.format(python=sys.executable, calls=str(self.calls_file), answers=str(self.answers))
        self.om.write_text(text)
        self.om.chmod(0o755)

    def run(
        self, *steps: Mapping[str, Any], env: Mapping[str, str] | None = None, **answers: Mapping[str, Any]
    ) -> list[Any]:
        """Send events, and return what the client is given for each. `answers` are those of om, by event."""
        source = next((DATA / self.client).glob("om.*")).read_text()
        is_hanging = any(answer.get("hangs") for answer in answers.values())
        for limit in ("5_000", "60_000") if is_hanging else ():
            source = source.replace(f"MS = {limit}", "MS = 300")
        copy = self.folder / "om.mjs"
        copy.write_text(source.replace("__OM__", json.dumps(str(self.om))))
        self.answers.write_text(json.dumps(answers))
        given = {"folder": str(self.folder), "session": "s-1", "file": "/s-1.jsonl", "steps": steps}
        ended = subprocess.run(
            [str(NODE), str(Path(__file__).with_name("harness.mjs")), self.client, str(copy)],
            input=json.dumps(given), capture_output=True, text=True, timeout=60, check=False,
            env={"HOME": "/home/ada", **(env or {})},
        )  # fmt: skip
        assert (ended.returncode, ended.stderr) == (0, "")
        [line] = ended.stdout.splitlines()  # an extension prints nothing
        told = json.loads(line)
        self.events = set(told["events"])
        return list(told["told"])

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls of om so far."""
        return (
            [json.loads(line) for line in self.calls_file.read_text().splitlines()] if self.calls_file.exists() else []
        )

    def asked(self, *keys: str) -> list[tuple[Any, ...]]:
        """These members of the JSON of each call."""
        return [tuple(call["given"].get(key) for key in keys) for call in self.calls]


def says(text: str) -> dict[str, str]:
    return {"prints": json.dumps({"context": text})}


FAILURES = [
    {"prints": '{"context": "half of it', "code": 0},
    {"prints": '{"context": "late"}', "code": 1},
    {"prints": '["context"]'},
    {"prints": "null"},
    {"prints": '{"context": 7}'},
    {"hangs": True},
]
"""Ways in which om may fail; none may disturb a client."""


class TestPi:
    @pytest.fixture
    def pi(self, tmp_path: Path) -> Extension:
        return Extension("pi", tmp_path)

    START: Mapping[str, Any] = {"event": "session_start", "input": {"reason": "startup"}}
    OWN: Mapping[str, Any] = {"type": "compaction", "details": {"type": "observational-memory"}}
    CUT: Mapping[str, Any] = {"type": "compaction"}
    MESSAGE: Mapping[str, Any] = {"type": "message"}

    def turn(self, *, has_sections: bool = True) -> dict[str, Any]:
        options: dict[str, Any] = {"systemPromptOptions": {"sections": {}}} if has_sections else {}
        return {"event": "before_agent_start", "input": {"prompt": "Hello", **options}}

    def compaction(self, **more: Any) -> dict[str, Any]:
        preparation = {"firstKeptEntryId": "e-7", "tokensBefore": 900, "messagesToSummarize": []}
        return {"event": "session_before_compact", "input": {"preparation": preparation, **more}}

    def test_it_listens_to_all_events_that_om_hook_knows(self, pi: Extension) -> None:
        pi.run()
        assert EVENTS["pi"].keys() <= pi.events

    def test_memory_is_asked_for_once_and_stands_in_the_prompt_of_every_turn(self, pi: Extension) -> None:
        """S2.42: pi keeps a section as long as each turn has it, so the prompt's cache holds."""
        told = pi.run(self.START, self.turn(), self.turn(), before_agent_start=says("the pack"))
        assert [each["sections"] for each in told[1:]] == [{"om_memory": "the pack"}] * 2
        [call] = pi.calls
        assert (call["arguments"], call["in"]) == (["hook", "pi"], str(pi.folder))
        place = {"session_id": "s-1", "transcript_path": "/s-1.jsonl", "cwd": str(pi.folder)}
        event = {"hook_event_name": "before_agent_start", "source": "startup", "prompt": "Hello"}
        assert call["given"] == place | event

    def test_a_pi_without_sections_is_given_one_message(self, pi: Extension) -> None:
        turn = self.turn(has_sections=False)
        told = pi.run(self.START, turn, turn, before_agent_start=says("the pack"))
        message = {"customType": "om_memory", "content": "the pack", "display": False}
        assert [each["result"] for each in told[1:]] == [{"message": message}, None]

    @pytest.mark.parametrize(
        ("branch", "reason", "source"),
        [
            ([], "new", "startup"),
            ([MESSAGE], "startup", "resume"),
            ([MESSAGE], "fork", "fork"),
            ([CUT, MESSAGE], "resume", "compact"),
            ([CUT, OWN, MESSAGE], "resume", "resume"),
        ],
    )
    def test_om_is_told_how_the_session_starts(
        self, pi: Extension, branch: list[Any], reason: str, source: str
    ) -> None:
        pi.run({"event": "session_start", "input": {"reason": reason}, "branch": branch}, self.turn())
        assert pi.asked("source") == [(source,)]

    def test_after_a_compaction_by_pi_memory_is_asked_for_again(self, pi: Extension) -> None:
        compacted = {"event": "session_compact", "input": {"compactionEntry": self.CUT}}
        pi.run(self.START, self.turn(), compacted, self.turn(), self.turn(), before_agent_start=says("the pack"))
        assert pi.asked("source") == [("startup",), ("compact",)]

    @pytest.mark.parametrize(("has_sections", "sources"), [(True, ["startup"]), (False, ["startup", "resume"])])
    def test_a_summary_by_om_has_the_rows_of_the_session_already(
        self, pi: Extension, has_sections: bool, sources: list[str]
    ) -> None:
        compacted = {"event": "session_compact", "input": {"compactionEntry": self.OWN}}
        turn = self.turn(has_sections=has_sections)
        pi.run(self.START, turn, compacted, turn, before_agent_start=says("the pack"))
        assert [source for (source,) in pi.asked("source")] == sources

    def test_a_compaction_is_made_by_om(self, pi: Extension) -> None:
        made = {"summary": "Rows.", "firstKeptEntryId": "e-7", "tokensBefore": 900}
        [told] = pi.run(
            self.compaction(),
            session_before_compact={"prints": '{"compact": true}'},
            compact={"prints": json.dumps(made)},
        )
        assert told["result"] == {"compaction": made}
        assert pi.calls[1]["arguments"] == ["compact", "-", "--to", "pi"]
        assert pi.calls[1]["given"] == {"preparation": self.compaction()["input"]["preparation"]}

    @pytest.mark.parametrize(
        "answer",
        [
            {"prints": '{"replace": false, "reason": "empty"}', "code": 1},
            {"prints": '{"replace": false, "reason": "larger"}'},
            {"prints": '{"summary": "", "firstKeptEntryId": "e-7"}'},
            {"prints": '{"summary": "Rows.", "firstKeptEntryId": "e-9"}'},
            {"prints": '{"summary": "Rows.", "firstKeptEntryId": "e-7"}', "code": 69},
            *FAILURES,
        ],
    )
    def test_pi_compacts_itself_if_om_refuses_or_fails(self, pi: Extension, answer: Mapping[str, Any]) -> None:
        """XA1."""
        [told] = pi.run(self.compaction(), session_before_compact={"prints": '{"compact": true}'}, compact=answer)
        assert told["result"] is None

    @pytest.mark.parametrize(
        ("answer", "more"), [({}, {}), ({"prints": '{"compact": true}'}, {"customInstructions": "Be brief."})]
    )
    def test_pi_compacts_itself_if_memory_is_off_or_the_user_gives_instructions(
        self, pi: Extension, answer: Mapping[str, Any], more: Mapping[str, Any]
    ) -> None:
        """S3.1."""
        [told] = pi.run(self.compaction(**more), session_before_compact=answer)
        assert told["result"] is None
        assert len(pi.calls) == 1

    def test_an_aborted_compaction_waits_for_nothing(self, pi: Extension) -> None:
        says_yes = {"prints": '{"compact": true}'}
        aborted = {**self.compaction(), "abort": True}
        [told] = pi.run(aborted, session_before_compact=says_yes, compact={"hangs": True})
        assert told["result"] is None

    @pytest.mark.parametrize("event", ["agent_settled", "session_shutdown"])
    def test_at_the_end_of_turns_and_sessions_om_observes(self, pi: Extension, event: str) -> None:
        [told] = pi.run({"event": event, "input": {}})
        assert told["result"] is None
        assert pi.asked("hook_event_name", "session_id", "transcript_path") == [(event, "s-1", "/s-1.jsonl")]

    @pytest.mark.parametrize("answer", FAILURES)
    def test_no_failure_disturbs_a_turn(self, pi: Extension, answer: Mapping[str, Any]) -> None:
        told = pi.run(
            self.START, self.turn(), {"event": "agent_settled"}, before_agent_start=answer, agent_settled=answer
        )
        assert told[1] == {"result": None, "sections": {}}

    def test_without_om_nothing_happens(self, pi: Extension) -> None:
        pi.om.unlink()
        told = pi.run(self.START, self.turn(), self.compaction())
        assert [each["result"] for each in told] == [None] * 3

    def test_agents_that_om_runs_have_no_memory(self, pi: Extension) -> None:
        pi.run(self.START, self.turn(), env={"OM_WORKER": "1"})
        assert not pi.events
        assert not pi.calls


class TestOpenCode:
    @pytest.fixture
    def opencode(self, tmp_path: Path) -> Extension:
        return Extension("opencode", tmp_path)

    TRANSFORM = "experimental.chat.system.transform"
    COMPACTING: Mapping[str, Any] = {
        "event": "experimental.session.compacting", "input": {"sessionID": "s-1"}, "output": {"context": []},
    }  # fmt: skip

    def turn(self, prompt: str = "You are opencode.") -> dict[str, Any]:
        return {"event": self.TRANSFORM, "input": {"sessionID": "s-1"}, "output": {"system": [prompt]}}

    def happens(self, kind: str, **properties: Any) -> dict[str, Any]:
        return {"event": "event", "input": {"event": {"type": kind, "properties": properties}}}

    def created(self, **info: Any) -> dict[str, Any]:
        return self.happens("session.created", sessionID="s-1", info={"id": "s-1", **info})

    def test_memory_is_asked_for_once_and_stands_in_every_request(self, opencode: Extension) -> None:
        told = opencode.run(self.created(), self.turn(), self.turn(), **{self.TRANSFORM: says("the pack")})
        assert told[1:] == [{"system": ["You are opencode.", "the pack"]}] * 2
        [call] = opencode.calls
        assert (call["arguments"], call["in"]) == (["hook", "opencode"], str(opencode.folder))
        assert call["given"] == {
            "hook_event_name": self.TRANSFORM,
            "session_id": "s-1",
            "transcript_path": "/home/ada/.local/share/opencode/opencode.db",
            "cwd": str(opencode.folder),
            "source": "startup",
        }

    @pytest.mark.parametrize(
        ("env", "path"),
        [
            ({"XDG_DATA_HOME": "/data"}, "/data/opencode/opencode.db"),
            ({"OPENCODE_DB": "other.db"}, "/home/ada/.local/share/opencode/other.db"),
            ({"OPENCODE_DB": "/else/where.db"}, "/else/where.db"),
        ],
    )
    def test_the_database_is_where_opencode_has_it(self, opencode: Extension, env: dict[str, str], path: str) -> None:
        opencode.run(self.turn(), env=env)
        assert opencode.asked("transcript_path") == [(path,)]

    @pytest.mark.parametrize(
        ("messages", "source"), [([], "resume"), ([{"info": {}}], "resume"), ([{"info": {"summary": True}}], "compact")]
    )
    def test_a_session_that_goes_on_may_have_been_compacted(
        self, opencode: Extension, messages: list[Any], source: str
    ) -> None:
        opencode.run({"messages": messages}, self.turn())
        assert opencode.asked("source") == [(source,)]

    def test_after_a_compaction_memory_is_asked_for_again(self, opencode: Extension) -> None:
        answers = {self.TRANSFORM: says("the pack"), "experimental.session.compacting": says("facts")}
        summary = self.turn("You summarise.")
        told = opencode.run(
            self.created(), self.turn(), self.COMPACTING, summary, self.happens("session.compacted", sessionID="s-1"),
            self.turn(), **answers,
        )  # fmt: skip
        assert told[2:4] == [{"context": ["facts"]}, {"system": ["You summarise."]}]
        assert told[5] == {"system": ["You are opencode.", "the pack"]}
        assert opencode.asked("source") == [("startup",), (None,), ("compact",)]

    def test_titles_and_subagents_need_no_memory(self, opencode: Extension) -> None:
        opencode.run(self.turn("You are a title generator. You output a title."))
        opencode.run(self.created(parentID="s-0"), self.turn(), self.happens("session.idle", sessionID="s-1"))
        assert not opencode.calls

    @pytest.mark.parametrize("properties", [{"sessionID": "s-1"}, {"info": {"id": "s-1"}}])
    @pytest.mark.parametrize("kind", ["session.idle", "session.deleted"])
    def test_at_the_end_of_turns_and_sessions_om_observes(
        self, opencode: Extension, kind: str, properties: Mapping[str, Any]
    ) -> None:
        opencode.run(self.happens(kind, **properties))
        assert opencode.asked("hook_event_name", "session_id") == [(kind, "s-1")]

    def test_other_events_start_nothing(self, opencode: Extension) -> None:
        opencode.run(self.happens("message.part.updated", part={}), self.happens("server.connected"))
        assert not opencode.calls

    @pytest.mark.parametrize("answer", FAILURES)
    def test_no_failure_disturbs_a_request(self, opencode: Extension, answer: Mapping[str, Any]) -> None:
        answers = dict.fromkeys(EVENTS["opencode"], answer)
        told = opencode.run(self.turn(), self.COMPACTING, self.happens("session.idle", sessionID="s-1"), **answers)
        assert told == [{"system": ["You are opencode."]}, {"context": []}, None]

    def test_without_om_nothing_happens(self, opencode: Extension) -> None:
        opencode.om.unlink()
        assert opencode.run(self.turn()) == [{"system": ["You are opencode."]}]

    def test_agents_that_om_runs_have_no_memory(self, opencode: Extension) -> None:
        opencode.run(self.turn(), env={"OM_WORKER": "1"})
        assert not opencode.events
        assert not opencode.calls
