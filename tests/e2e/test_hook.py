"""`om hook`: what clients are answered, and that nothing ever disturbs them."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from omcli.clients import CLIENTS
from omcli.clients.events import EVENTS, Moment
from omcli.clients.prepared import _VARIABLES
from omcli.settings.values import KEYS
from tests.command_line import Ended
from tests.conftest import Om
from tests.e2e.background import wait_until
from tests.e2e.contents import connected, held, make_newer
from tests.e2e.transcripts import Talk

OLD = "5d0c6e0a-0000-4000-8000-0000000000aa"
NEW = "5d0c6e0a-0000-4000-8000-0000000000bb"
STATE = ".local/state/om"
_OF_MODELS = ("observer.", "reflector.", "embeddings.", "provider.", "limits.", "prices", "consolidate.", "retention.")
_OF_WRITING = ("observe.", "reflect.", "tools.", "store.", "jobs", "author")


def project(om: Om) -> Path:
    folder = om.folder / "ferry"
    folder.mkdir(exist_ok=True)
    return folder


def talk(om: Om, *, session: str = OLD) -> Talk:
    return (
        Talk(session=session, cwd=str(project(om)))
        .user("Always run `make lint` before a commit. We decided to print the timetable in src/board.py.")
        .assistant("I print the timetable with a timer unit, ferry-board.timer.")
        .call("Bash", {"command": "make board"})
        .result("make: *** No rule to make target 'board'.", is_error=True)
    )


@pytest.fixture
def told(om: Om) -> Om:
    om("observe", "-q", stdin=talk(om).text())
    return om


def event_of(client: str, moment: Moment) -> str:
    return next(event for event, at in EVENTS[client].items() if at is moment)


def given(om: Om, client: str, moment: Moment = Moment.START, **more: Any) -> str:
    """What a client passes on stdin."""
    keys = ("conversation_id", "workspace_roots") if client == "cursor" else ("session_id", "cwd")
    folder = str(project(om))
    place = {keys[0]: NEW, keys[1]: [folder] if client == "cursor" else folder}
    return json.dumps({"hook_event_name": event_of(client, moment), **place, "transcript_path": None, **more})


def hook(om: Om, client: str, stdin: str | bytes, *options: str, env: dict[str, str] | None = None) -> Ended:
    ended = om("hook", client, *options, stdin=stdin, env=env)
    assert ended.code == 0
    return ended


def text_of(client: str, ended: Ended) -> str:
    """The text in the answer of a hook, in the form that the client wants."""
    answer: Any = json.loads(ended.stdout)
    if client == "cursor":
        return str(answer["additional_context"])
    if client in ("pi", "opencode"):
        return str(answer["context"])
    assert answer.keys() == {"hookSpecificOutput"}
    assert answer["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
    return str(answer["hookSpecificOutput"]["additionalContext"])


def logged(om: Om) -> list[dict[str, Any]]:
    log = om.home / STATE / "hooks.log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


class TestStart:
    @pytest.mark.parametrize("client", CLIENTS)
    def test_a_session_begins_with_what_others_have_learnt(self, told: Om, client: str) -> None:
        """S0.35, S1.10: one JSON object in the client's own form, and nothing else."""
        text = text_of(client, hook(told, client, given(told, client)))
        assert text.startswith("<om-memory>\n")
        assert "CRITICAL User: Always run `make lint` before a commit." in text
        [run] = logged(told)
        assert (run["client"], run["session"], run["ended"]) == (client, NEW, 0)

    @pytest.mark.parametrize("source", ["startup", "resume", "clear", "fork", None])
    def test_what_a_session_has_in_its_context_is_not_told_again(self, told: Om, source: str | None) -> None:
        answer = hook(told, "claude-code", given(told, "claude-code", session_id=OLD, source=source))
        assert answer.stdout == ""

    def test_after_a_compaction_its_own_rows_are_told_as_well(self, told: Om) -> None:
        answer = hook(told, "claude-code", given(told, "claude-code", session_id=OLD, source="compact"))
        text = text_of("claude-code", answer)
        assert "This session:" in text
        assert "Always run `make lint`" in text

    def test_other_projects_hear_nothing(self, told: Om) -> None:
        (told.folder / "tide").mkdir()
        assert hook(told, "codex", given(told, "codex", cwd=str(told.folder / "tide"))).stdout == ""

    def test_without_a_store_nothing_is_printed_and_none_is_created(self, om: Om) -> None:
        assert hook(om, "claude-code", given(om, "claude-code")).stdout == ""
        assert not om.has_store

    def test_a_pack_is_chosen_to_fit_what_the_client_takes(self, om: Om) -> None:
        """The caps of integrations.md §2: 9,500 characters, and as many bytes for Codex. No row is cut."""
        for number in range(80):
            om("note", f"Überfähre №{number}: „Anlegestelle {'ä' * 90}“ — Kai {number} öffnet früh.", "-C", project(om))
        rows = {line for line in om("log", "--jsonl").lines for line in [line["text"]]}
        for client, size in (("claude-code", len), ("codex", lambda text: len(text.encode()))):
            text = text_of(client, hook(om, client, given(om, client), env={"OM_HOOK_TOKENS": "9000"}))
            assert 6_000 < size(text) <= 9_500
            notes = [line for line in text.splitlines() if "Überfähre" in line]
            assert all(any(row in note for row in rows) for note in notes)
        usual = text_of("claude-code", hook(om, "claude-code", given(om, "claude-code")))
        assert om("tokens", stdin=usual, code=0).stdout
        assert int(om("tokens", "--json", stdin=usual).document["tokens"]) <= 2_300


class TestPrepared:
    """A pack that still holds is not made again."""

    def start(self, om: Om, **more: Any) -> str:
        return hook(om, "claude-code", given(om, "claude-code", **more), env={"OM_SCOPE": "project"}).stdout

    def packs(self, om: Om) -> list[Path]:
        return list((om.home / STATE / "packs").iterdir())

    @pytest.mark.file_store("packs kept while it is the same")
    def test_the_same_pack_is_printed_without_opening_the_store(self, told: Om) -> None:
        first = self.start(told)
        [pack] = self.packs(told)
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (pack, pack.parent, pack.parent.parent)]
        assert modes == [0o600, 0o700, 0o700]
        pack.write_text(pack.read_text().replace("make lint", "make tea"))
        assert self.start(told) == first.replace("make lint", "make tea")

    @pytest.mark.file_store("packs kept while it is the same")
    def test_packs_that_hold_no_more_are_deleted(self, told: Om) -> None:
        """Those of folders that are gone, and what a full disk has left of one."""
        self.start(told)
        [pack] = self.packs(told)
        for name, age in (("codex-00", 90_000), ("codex-01.77", 90_000), ("codex-02", 80_000)):
            other = pack.with_name(name)
            other.write_text("{}")
            os.utime(other, (time.time() - age,) * 2)
        told("note", "The harbour closes at nine.", "-C", project(told))
        self.start(told)
        assert {each.name for each in self.packs(told)} == {pack.name, "codex-02"}

    @pytest.mark.file_store("packs kept while it is the same")
    def test_a_pack_keeps_no_variable_that_may_hold_a_secret(self, told: Om) -> None:
        secret = {"OM_OBSERVER_BASE_URL": "https://ada:hunter2@models.example/v1", "OM_OBSERVER_API_KEY": "sk-hunter2"}
        hook(told, "claude-code", given(told, "claude-code"), env=secret)
        [pack] = self.packs(told)
        assert "hunter2" not in pack.read_text()

    @pytest.mark.parametrize("key", [key for key in KEYS if not key.startswith((*_OF_MODELS, *_OF_WRITING))])
    def test_the_variable_of_every_setting_that_may_shape_a_pack_is_kept_with_it(self, key: str) -> None:
        """So that the pack is made again if it changes."""
        assert f"OM_{key.upper().replace('.', '_')}".startswith(_VARIABLES)

    def test_a_pack_is_made_again_when_the_store_has_changed(self, told: Om) -> None:
        assert "harbour" not in self.start(told)
        told("note", "The harbour closes at nine.", "-C", project(told))
        assert "The harbour closes at nine." in self.start(told)

    @pytest.mark.parametrize("change", ["variable", "file", "project", "folder", "session", "option", "version"])
    @pytest.mark.file_store("packs kept while it is the same")
    def test_a_pack_is_made_again_if_anything_else_differs(self, told: Om, change: str) -> None:
        self.start(told)
        [pack] = self.packs(told)
        pack.write_text(pack.read_text().replace("make lint", "make tea"))
        env, more, options = {"OM_SCOPE": "project"}, dict[str, Any](), list[str]()
        if change == "variable":
            env["OM_CONTEXT_CROSS"] = "3000"
        elif change == "file":
            config = told.home / ".config" / "om" / "config.toml"
            config.parent.mkdir(parents=True)
            config.write_text("wait = 3\n")
        elif change == "project":
            (project(told) / ".om.toml").write_text("[context]\ncross = 3000\n")
        elif change == "folder":
            more["cwd"] = f"{project(told)}/."
        elif change == "session":
            more |= {"session_id": OLD, "source": "compact"}
        elif change == "option":
            options = ["--now", "2027-01-01T00:00:00Z"]
        else:
            pack.write_text(pack.read_text().replace('"om": "', '"om": "0.0.'))
        ended = hook(told, "claude-code", given(told, "claude-code", **more), *options, env=env)
        assert "make lint" in ended.stdout
        assert "make tea" not in ended.stdout

    @pytest.mark.file_store("packs kept while it is the same")
    def test_a_damaged_file_is_made_again(self, told: Om) -> None:
        first = self.start(told)
        [pack] = self.packs(told)
        for content in ("", "{", "[]", '{"given": 1}'):
            pack.write_text(content)
            assert self.start(told) == first

    @pytest.mark.parametrize("options", [[], ["--hard", "--yes"]])
    @pytest.mark.file_store("packs kept while it is the same")
    def test_nothing_forgotten_stays_in_it(self, told: Om, options: list[str]) -> None:
        """Invariant 5: also for other clients and folders."""
        self.start(told)
        told("forget", "--match", "make lint", *options)
        assert self.packs(told) == []
        assert "make lint" not in self.start(told)

    @pytest.mark.file_store("packs kept while it is the same")
    def test_what_is_deleted_later_is_deleted_here_as_well(self, told: Om) -> None:
        told("forget", "--match", "make lint")
        self.start(told)
        told("prune", "--hard", "--yes")
        assert self.packs(told) == []

    @pytest.mark.file_store("packs kept while it is the same")
    def test_a_worker_prepares_the_pack_of_the_next_session(self, om: Om) -> None:
        transcript = om.write("t.jsonl", talk(om).text())
        asked = {"event": "Stop", "session": OLD, "transcript": str(transcript), "folder": str(project(om))}
        hook(om, "claude-code", "", "--worker", json.dumps(asked), env={"OM_SCOPE": "project"})
        [pack] = self.packs(om)
        pack.write_text(pack.read_text().replace("make lint", "make tea"))
        assert "make tea" in self.start(om)


class TestPrompt:
    def prompt(self, om: Om, text: str, *, env: dict[str, str]) -> str:
        return hook(om, "claude-code", given(om, "claude-code", Moment.PROMPT, prompt=text), env=env).stdout

    def test_a_prompt_is_answered_only_if_that_is_set(self, told: Om) -> None:
        assert self.prompt(told, "Where is the timetable printed?", env={}) == ""

    def test_what_matches_is_told_once(self, told: Om) -> None:
        env = {"OM_HOOK_PROMPT": "1"}
        first = self.prompt(told, "Where is the timetable printed?", env=env)
        assert "src/board.py" in first
        assert "make board" not in first
        assert self.prompt(told, "And the timetable, where is it printed?", env=env) == ""

    def test_what_the_pack_has_told_is_not_told_again(self, told: Om) -> None:
        env = {"OM_HOOK_PROMPT": "1"}
        assert hook(told, "claude-code", given(told, "claude-code"), env=env).stdout
        assert self.prompt(told, "Where is the timetable printed?", env=env) == ""
        assert hook(told, "claude-code", given(told, "claude-code", source="clear"), env=env).stdout

    def test_a_pack_in_a_prompt_is_not_what_it_asks_for(self, told: Om) -> None:
        """Gemini CLI puts the pack of the start into the first prompt."""
        pack = "<hook_context>Always run `make lint` before a commit.</hook_context>"
        assert self.prompt(told, f"{pack}\n\nPaint the zeppelin.", env={"OM_HOOK_PROMPT": "1"}) == ""

    def test_a_prompt_that_nothing_matches_is_not_answered(self, told: Om) -> None:
        assert self.prompt(told, "Paint the zeppelin.", env={"OM_HOOK_PROMPT": "1"}) == ""


class TestCompaction:
    def test_claude_code_is_told_what_its_summary_should_keep(self, told: Om) -> None:
        ended = hook(told, "claude-code", given(told, "claude-code", Moment.COMPACT, session_id=OLD))
        assert ended.stdout.startswith("Facts of this session, from its memory, that the summary should keep:\n")
        assert "make board" in ended.stdout

    def test_a_session_without_rows_adds_nothing(self, told: Om) -> None:
        assert hook(told, "claude-code", given(told, "claude-code", Moment.COMPACT)).stdout == ""

    def test_the_extension_for_pi_compacts_by_om_unless_memory_is_off(self, told: Om) -> None:
        """S3.1: `om compact` itself does not ask."""
        call = given(told, "pi", Moment.COMPACT, session_id=OLD)
        assert json.loads(hook(told, "pi", call).stdout) == {"compact": True}
        (project(told) / ".om.toml").write_text("enabled = false\n")
        assert hook(told, "pi", call).stdout == ""

    @pytest.mark.parametrize("client", ["codex", "gemini", "cursor"])
    def test_others_take_no_text_here(self, told: Om, client: str) -> None:
        ended = hook(told, client, given(told, client, Moment.COMPACT, session_id=OLD, conversation_id=OLD))
        assert ended.stdout == ""


class TestOff:
    @pytest.mark.parametrize("env", [{"OM_MEMORY": "0"}, {"OM_DISABLED": "1"}, {"OM_WORKER": "1"}])
    def test_the_environment_turns_hooks_off(self, told: Om, env: dict[str, str]) -> None:
        """S3.1; and an agent that om runs as a model is not observed."""
        assert hook(told, "claude-code", given(told, "claude-code"), env=env).stdout == ""
        assert hook(told, "claude-code", given(told, "claude-code", Moment.STOP), env=env).stdout == ""
        assert logged(told) == []

    @pytest.mark.parametrize("line", ["enabled = false", "disabled = true"])
    def test_a_projects_file_turns_them_off(self, told: Om, line: str) -> None:
        (project(told) / ".om.toml").write_text(line)
        assert hook(told, "claude-code", given(told, "claude-code")).stdout == ""

    @pytest.mark.parametrize(
        ("env", "line", "acts"),
        [({}, "", False), ({"OM_MEMORY": "1"}, "", True), ({}, "enabled = true", True), ({}, "enabled = false", False)],
    )
    def test_preset_pi_has_to_be_asked(self, told: Om, env: dict[str, str], line: str, *, acts: bool) -> None:
        """S3.1: by a variable or a file."""
        config = told.write("config.toml", f'preset = "pi"\n{line}\n')
        env = {**env, "OM_CONFIG": str(config), "OM_SCOPE": "project", "OM_CONTEXT_CROSS": "1000"}
        assert bool(hook(told, "pi", given(told, "pi"), env=env).stdout) is acts


class TestFaults:
    """S2.42, F54, F98: the exit code is 0, stdout is empty, and the log has the reason."""

    @pytest.mark.parametrize(
        ("stdin", "reason"),
        [
            ("", "stdin is not valid JSON"),
            ("{", "stdin is not valid JSON"),
            ("[" * 100_000, "stdin is not valid JSON"),
            (b"\xff\xfe\x00", "stdin is not valid JSON"),
            ("[]", "stdin is not a JSON object"),
            ("{}", "stdin names no event"),
            ('{"hook_event_name": 7}', "stdin names no event"),
            ('{"hook_event_name": "Telepathy"}', "unknown event `Telepathy`"),
        ],
    )
    def test_what_cannot_be_understood_is_logged(self, om: Om, stdin: str | bytes, reason: str) -> None:
        ended = hook(om, "claude-code", stdin)
        assert (ended.stdout, ended.stderr) == ("", "")
        assert [(run["error"], run["ended"]) for run in logged(om)] == [(reason, 1)]

    def test_an_unknown_client_or_option_is_no_decision_of_a_hook(self, om: Om) -> None:
        """XA2: exit 2 would refuse a prompt, or send an agent round in circles."""
        assert hook(om, "claud-code", "{}").stdout == ""
        assert logged(om)[0]["error"].startswith("unknown client `claud-code` (expected one of claude-code, codex")
        assert hook(om, "claude-code", "{}", "--bogus").stdout == ""
        assert om("hook", stdin="{}").code == 0
        assert om("hook", "--db", stdin="{}").code == 0

    @pytest.mark.parametrize("moment", list(Moment))
    @pytest.mark.parametrize("content", [b"not a store at all, but a text of some length" * 200, b""])
    @pytest.mark.file_store("damage")
    def test_a_store_that_is_none_disturbs_nobody(self, om: Om, moment: Moment, content: bytes) -> None:
        om.db.parent.mkdir()
        om.db.write_bytes(content)
        assert hook(om, "claude-code", given(om, "claude-code", moment, prompt="Where?")).stdout == ""

    def test_a_newer_store_is_logged(self, told: Om) -> None:
        make_newer(told.place)
        assert hook(told, "claude-code", given(told, "claude-code")).stdout == ""
        assert "has schema version 9999" in logged(told)[-1]["error"]

    def test_a_locked_store_is_read_all_the_same(self, told: Om) -> None:
        with held(told.place):
            assert "make lint" in hook(told, "claude-code", given(told, "claude-code")).stdout

    @pytest.mark.parametrize("moment", [Moment.START, Moment.COMPACT])
    @pytest.mark.file_store("its locks")
    def test_a_store_locked_exclusively_is_waited_for_less_than_a_client_waits(self, told: Om, moment: Moment) -> None:
        """Clients end a hook after 5 seconds, and then nothing would be logged."""
        with connected(told.place) as store:
            store.execute("PRAGMA locking_mode = EXCLUSIVE")
            store.execute("BEGIN EXCLUSIVE")
            store.execute("DELETE FROM notices")
            call = given(told, "claude-code", moment, session_id=OLD if moment is Moment.COMPACT else NEW)
            hook(told, "claude-code", call, env={"OM_WAIT": "3600"})
        assert "(waited 2 s)" in logged(told)[-1]["error"]

    def test_in_a_folder_that_is_gone_no_other_projects_memory_is_told(self, told: Om) -> None:
        """And nothing is kept for the day when it is there again."""
        gone = told.folder / "gone"
        assert (
            hook(told, "claude-code", given(told, "claude-code", cwd=str(gone)), "-C", str(project(told))).stdout == ""
        )
        assert logged(told)[-1]["error"] == f"cannot enter {gone}: No such file or directory"
        gone.mkdir()
        assert hook(told, "claude-code", given(told, "claude-code", cwd=str(gone))).stdout == ""

    @pytest.mark.parametrize("folder", ["nul\0", "lone \ud800"])
    def test_what_can_be_no_path_is_none(self, told: Om, folder: str) -> None:
        call = given(told, "claude-code", cwd=folder, transcript_path=folder)
        assert "make lint" in hook(told, "claude-code", call, "-C", str(project(told))).stdout
        assert logged(told)[-1]["ended"] == 0

    def test_what_was_told_may_be_impossible_to_note(self, told: Om) -> None:
        """Then it may be told again, and is told now."""
        (told.home / ".local" / "state").parent.mkdir(parents=True, exist_ok=True)
        (told.home / ".local" / "state").write_text("a file")
        env = {"OM_HOOK_PROMPT": "1"}
        assert "make lint" in hook(told, "claude-code", given(told, "claude-code"), env=env).stdout

    def test_a_log_that_cannot_be_written_disturbs_nobody(self, told: Om) -> None:
        (told.home / ".local").write_text("a file")
        assert "make lint" in hook(told, "claude-code", given(told, "claude-code")).stdout
        assert hook(told, "claude-code", given(told, "claude-code", Moment.STOP)).stdout == ""


class TestStatus:
    def test_it_tells_the_last_hook_of_each_client_and_what_failed_since(self, told: Om) -> None:
        hook(told, "codex", given(told, "codex"))
        hook(told, "claude-code", "{}")
        lines = [line for line in told("status").stdout.splitlines() if line.startswith("hooks ")]
        assert [line.split()[1] for line in lines] == ["codex:", "claude-code:"]
        assert lines[1].endswith("stdin names no event")
        codex, claude = told("status", "--json").document["hooks"]
        assert (codex["client"], codex["event"], codex["session"]) == ("codex", "SessionStart", NEW)
        assert (claude["client"], claude["error"]) == ("claude-code", "stdin names no event")

    def test_a_call_that_named_no_event_is_over_with_the_next_good_one(self, told: Om) -> None:
        hook(told, "claude-code", "nonsense")
        hook(told, "claude-code", given(told, "claude-code"))
        assert "nonsense" not in told("status").stdout
        assert "not valid JSON" not in told("status").stdout

    @pytest.mark.parametrize("line", ['{"at": 1, "client": ["a"], "event": {}, "ended": "x"}', "[]", '{"at": "now"}'])
    def test_a_line_of_the_log_that_no_hook_wrote_is_skipped(self, told: Om, line: str) -> None:
        hook(told, "codex", given(told, "codex"))
        with (told.home / STATE / "hooks.log").open("a") as log:
            log.write(f"{line}\n")
        assert "codex: " in told("status").stdout
        told("status", "--line")


class TestRetired:
    """Hooks that the retired program of the same name installed (XA2): exit 2 would send an agent round in circles."""

    @pytest.mark.parametrize(
        ("words", "client"),
        [
            (["claude-checkpoint"], "claude-code"),
            (["codex-checkpoint", "--async"], "codex"),
            (["context", "--for", "codex", "--cwd", "/home/ada"], "codex"),
            (["context", "--for", "claude", "--cwd", "/home/ada"], "claude-code"),
        ],
    )
    def test_they_do_nothing_and_say_once_what_replaces_them(self, om: Om, words: list[str], client: str) -> None:
        first, second = (om(*words, stdin='{"session_id": "s"}') for _ in range(2))
        assert (first.stdout, second.stdout, second.stderr) == ("", "", "")
        assert f"`om install {client}` replaces it" in first.stderr

    def test_each_client_is_told(self, om: Om) -> None:
        om("claude-checkpoint", stdin="{}")
        assert "`om install codex` replaces it" in om("codex-checkpoint", stdin="{}").stderr

    def test_other_mistakes_stay_usage_errors(self, om: Om) -> None:
        om("claude-checkpoints", code=2)
        om("context", "--cwd", "/home/ada", code=2)


class TestProcess:
    def test_a_worker_observes_what_a_turn_has_added(self, om: Om) -> None:
        """S0.35, S4.12: the hook returns at once; the transcript is observed in the directory of the client."""
        transcript = om.write("t.jsonl", talk(om).text())
        for moment in (Moment.TOOL, Moment.STOP, Moment.END):
            stdin = given(om, "claude-code", moment, session_id=OLD, transcript_path=str(transcript))
            ended = om.process("hook", "claude-code", stdin=stdin)
            assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")
        wait_until(lambda: sum(run["event"] == "worker" for run in logged(om)) == 3)
        assert {run["ended"] for run in logged(om)} <= {0, 75}
        assert "ferry-board.timer" in om("log").stdout
        new = om.process("hook", "claude-code", stdin=given(om, "claude-code"))
        assert "make lint" in text_of("claude-code", new)

    def test_a_transcript_that_is_not_named_is_found_by_its_session(self, om: Om) -> None:
        """Codex may name none."""
        place = om.home / ".claude" / "projects" / "ferry"
        place.mkdir(parents=True)
        (place / f"{OLD}.jsonl").write_text(talk(om).text())
        om.process("hook", "claude-code", stdin=given(om, "claude-code", Moment.STOP, session_id=OLD))
        wait_until(lambda: any(run["event"] == "worker" for run in logged(om)))
        assert "ferry-board.timer" in om("log").stdout

    def test_a_transcript_that_cannot_be_read_is_logged(self, om: Om) -> None:
        transcript = om.write("t.jsonl", "\0\1\2")
        stdin = given(om, "claude-code", Moment.END, session_id=OLD, transcript_path=str(transcript))
        om.process("hook", "claude-code", stdin=stdin)
        wait_until(lambda: any(run["event"] == "worker" for run in logged(om)))
        [run] = [run for run in logged(om) if run["event"] == "worker"]
        assert run["ended"] == 65
        assert "t.jsonl" in run["error"]

    def work(self, om: Om, **more: Any) -> list[dict[str, Any]]:
        """Runs a worker in this process, and returns what it logged."""
        told = {"event": "Stop", "session": OLD, "transcript": None, "folder": str(project(om)), **more}
        hook(om, "claude-code", "", "--worker", json.dumps(told))
        return [run for run in logged(om) if run["event"] == "worker"]

    @pytest.mark.parametrize("fault", ["newer", pytest.param("none", marks=pytest.mark.file_store("damage"))])
    def test_a_store_that_cannot_be_used_is_no_success(self, om: Om, fault: str) -> None:
        """`--best-effort` is for models; `om observe --best-effort` fails, too."""
        transcript = om.write("t.jsonl", talk(om).text())
        if fault == "newer":
            om("note", "The ferry leaves at nine.")
            make_newer(om.place)
        else:
            om.db.parent.mkdir()
            om.db.write_text("not a store" * 500)
        [run] = self.work(om, transcript=str(transcript))
        assert run["ended"] == 78
        assert str(om.place) in run["error"]
        om("observe", "--best-effort", transcript, code=78)

    def test_a_pipe_is_no_transcript(self, om: Om) -> None:
        """A worker would wait for ever."""
        os.mkfifo(om.folder / "pipe")
        assert self.work(om, transcript=str(om.folder / "pipe")) == []

    def test_a_worktree_may_be_gone_when_its_transcript_is_observed(self, om: Om) -> None:
        transcript = om.write("t.jsonl", talk(om).text())
        [run] = self.work(om, transcript=str(transcript), folder=str(om.folder / "gone"))
        assert run["ended"] == 0
        assert "ferry-board.timer" in om("log").stdout

    @pytest.mark.parametrize("folder", [None, "elsewhere"])
    def test_a_project_that_turns_memory_off_is_not_observed_from_elsewhere(self, om: Om, folder: str | None) -> None:
        """S3.1: the agent may have changed its directory, or the client names none."""
        transcript = om.write("t.jsonl", talk(om).text())
        (om.folder / "elsewhere").mkdir()
        off = project(om) / ".om.toml"
        off.write_text("enabled = false\n")
        [run] = self.work(om, transcript=str(transcript), folder=folder and str(om.folder / folder))
        assert run["ended"] == 0
        ended = om("observe", transcript)
        assert "left out, because memory is off in their project" in ended.stderr
        assert om("log", "--all").stdout == ""
        place = om.home / ".claude" / "projects" / "ferry"
        place.mkdir(parents=True)
        (place / f"{OLD}.jsonl").write_text(talk(om).text())
        om("consolidate")
        assert om("log", "--all").stdout == ""
        off.unlink()
        om("consolidate")
        assert "ferry-board.timer" in om("log").stdout

    def test_a_session_without_a_transcript_has_nothing_to_observe(self, om: Om) -> None:
        ended = hook(om, "claude-code", "", "--worker", json.dumps({
            "event": "SessionEnd", "session": NEW, "transcript": str(om.folder / "none.jsonl"), "folder": None,
        }))  # fmt: skip
        assert (ended.stdout, logged(om)) == ("", [])

    @pytest.mark.parametrize("stdin", ["", "{}", '{"hook_event_name": "Stop"}'])
    def test_the_process_ends_with_0_whatever_it_is_given(self, om: Om, stdin: str) -> None:
        ended = om.process("hook", "claude-code", stdin=stdin)
        assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")
