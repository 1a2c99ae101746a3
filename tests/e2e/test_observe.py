"""`om observe`: transcripts in, observation lines out, each message once."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from omcli.pack.layouts import PackFormat
from tests.conftest import Om
from tests.e2e.contents import stored
from tests.e2e.transcripts import PROJECT, Talk, tide_story

COUNTS = {
    "messages": 8,
    "human_messages": 2,
    "assistant_messages": 2,
    "tool_calls": 2,
    "tool_results": 2,
    "errors": 1,
    "compactions": 0,
}


def test_a_piped_transcript_gives_observation_lines_on_stdout_and_one_report_line_on_stderr(om: Om) -> None:
    """S0.8: nothing but data on stdout, talk on stderr."""
    run = om("observe", stdin=tide_story().text())

    lines = run.stdout.splitlines()
    assert any("decision" in line and "lower case" in line for line in lines), run.stdout
    assert all(line[8:10] == " [" and line[26] == "]" for line in lines), "columns stay where they are"
    assert run.stderr.splitlines() == [f"-: claude-code, 8 messages (8 new), {len(lines)} observations"]
    assert run.stdout == om("log").stdout, "the log prints the same lines"


def test_the_json_report_names_what_was_read_and_what_was_written(om: Om) -> None:
    transcript = om.write("tide.jsonl", tide_story().text())

    (report,) = om("observe", transcript, "--json").document["files"]

    assert report["path"] == str(transcript)
    assert report["format"] == "claude-code"
    assert report["session_id"] == tide_story().session
    assert report["cwd"] == PROJECT
    assert {name: report[name] for name in COUNTS} == COUNTS
    assert (report["new_messages"], report["known_messages"]) == (8, 0)
    assert report["skipped"] == {}
    assert report["redactions"] == {}
    rows = om("log", "--jsonl").lines
    assert (report["rows"], report["observations"]) == (rows, len(rows)), "with --json the same is done"
    assert rows, "a story like this has something worth keeping"


def test_the_same_and_a_grown_transcript_add_only_what_is_new(om: Om) -> None:
    """F59, F68: a transcript is fed again and again while it grows."""
    talk = tide_story()
    transcript = om.write("tide.jsonl", talk.text())
    om("observe", transcript)
    before = om("log").stdout

    again = om("observe", transcript, "--json").document["files"][0]
    assert (again["new_messages"], again["known_messages"], again["observations"]) == (0, 8, 0)

    talk.user("We decided to release on 2026-03-01.")
    transcript.write_text(talk.text())
    grown = om("observe", transcript, "--json").document["files"][0]
    assert (grown["new_messages"], grown["known_messages"]) == (1, 8)
    assert om("log").stdout.startswith(before), "the log only grows"
    assert "2026-03-01" in om("log").stdout.removeprefix(before)


def test_a_truncated_last_line_is_left_for_the_next_run(om: Om) -> None:
    """F59: the file is being written while it is read."""
    whole = tide_story().text()
    transcript = om.write("tide.jsonl", whole[: len(whole) - 40])

    first = om("observe", transcript, "--json", "--strict").document["files"][0]
    assert first["messages"] == 7
    assert first["skipped"] == {"truncated": 1}

    transcript.write_text(whole)
    second = om("observe", transcript, "--json").document["files"][0]
    assert (second["new_messages"], second["known_messages"]) == (1, 7)


@pytest.mark.parametrize("content", ["", "\n\n \n"])
def test_an_empty_input_has_no_messages_and_is_no_error(om: Om, content: str) -> None:
    """F56."""
    run = om("observe", om.write("empty.jsonl", content))
    assert run.stdout == ""
    assert run.stderr == f"{om.folder}/empty.jsonl: no messages\n"
    assert om("observe", "--json", stdin=content).document["files"] == [
        {"path": "-", "sessions": [], **dict.fromkeys(COUNTS, 0), "new_messages": 0, "known_messages": 0, "asides": 0,
         "side_messages": 0, "images": 0, "skipped": {}, "redactions": {}, "unread_bytes": 0, "observations": 0,
         "message_tokens": 0, "observation_tokens": 0, "pending": 0, "findings": {}, "rows": []}
    ]  # fmt: skip


def test_a_missing_file_is_exit_66_and_a_directory_65(om: Om) -> None:
    """F56."""
    missing = om("observe", "nowhere.jsonl", code=66)
    hint = "check the path; `-` is standard input"
    assert (missing.stdout, missing.stderr) == (
        "",
        f"om: error: nowhere.jsonl: no such file\nhint: {hint}\n",
    )
    folder = om("observe", om.home, code=65)
    assert "it is a directory\nhint: " in folder.stderr
    error = json.loads(om("observe", "nowhere.jsonl", "--json", code=66).stderr)
    assert error == {
        "schema": 1,
        "error": {
            "path": "nowhere.jsonl",
            "slug": "no-input",
            "message": "no such file",
            "hint": hint,
            "exit_code": 66,
        },
    }


def test_inputs_that_hold_no_messages_make_no_store(om: Om) -> None:
    for name, code in (("nowhere.jsonl", 66), (om.write("garbage", os.urandom(500)), 65), (om.write("empty", ""), 0)):
        om("observe", name, code=code)
        assert not om.has_store, name
        assert not om.db.parent.exists(), name


def test_an_input_that_fails_while_it_is_read_is_exit_66(om: Om) -> None:
    """The disk of an input is not the store's: the next input may be well."""
    failing = om.folder / "failing.jsonl"
    failing.symlink_to("/proc/self/mem")  # its first byte cannot be read
    if not failing.exists():
        pytest.skip("no file here fails when it is read")
    assert "failing.jsonl: it cannot be read: " in om("observe", failing, code=66).stderr
    assert om("observe", failing, om.write("tide.jsonl", tide_story().text())).stdout
    assert "failing.jsonl: it cannot be read: " in om("tokens", failing, code=66).stderr


def test_a_terminal_as_stdin_without_a_file_is_a_usage_error(om: Om) -> None:
    """F56."""
    leader, follower = pty.openpty()
    try:
        run = subprocess.run(
            om.command("observe"), stdin=follower, capture_output=True, env=om.environment(), timeout=300, check=False
        )
    finally:
        os.close(leader)
        os.close(follower)
    assert run.returncode == 2
    assert run.stderr.decode() == "om: error: no transcript given\nhint: `om observe FILE`, or `om observe < FILE`\n"


def test_lines_that_are_no_messages_are_counted_and_reported_and_strict_makes_them_an_error(om: Om) -> None:
    """F57, F61, D5: one wrong line costs one line."""
    talk = Talk()
    for number in range(50):
        talk.user(f"prompt number {number}")
        talk.assistant(f"answer number {number}")
    for at, line in ((90, "null"), (60, '"str"'), (30, "[1, 2]"), (10, "this is no JSON"), (5, "[" * 100_000)):
        talk.lines.insert(at, line)
    transcript = om.write("torn.jsonl", talk.text())

    run = om("observe", transcript, "--json")
    (report,) = run.document["files"]
    assert report["messages"] == 100
    assert sum(report["skipped"].values()) == 5, report["skipped"]
    assert om("observe", transcript, "--strict", code=65).stderr.count("5 lines skipped") == 1


def test_a_file_with_nothing_readable_in_it_is_refused(om: Om) -> None:
    """F57, F60."""
    for name, content in (("bytes", os.urandom(3000)), ("prose", "Lorem ipsum dolor sit amet.\n" * 40)):
        run = om("observe", om.write(name, content), code=65)
        assert run.stdout == ""
        assert len(run.stderr.splitlines()) == 2, "one line and a hint"
    forced = om("observe", "--format", "claude-code", om.write("prose", "Lorem ipsum\nDolor\n"), code=65)
    assert forced.stderr.startswith(f"om: error: {om.folder}/prose: ")


def test_a_wrong_byte_costs_a_character_and_not_the_message(om: Om) -> None:
    """F60, F62: also after a BOM and with CRLF."""
    content = tide_story().text().encode().replace(b"Cuxhaven.", b"Cux\xffhaven.").replace(b"\n", b"\r\n")
    (report,) = om("observe", "--json", stdin=b"\xef\xbb\xbf" + content).document["files"]
    assert report["messages"] == 8
    assert any("Cux\ufffdhaven" in row["text"] for row in report["rows"])


def test_one_bad_file_does_not_stop_the_others(om: Om) -> None:
    """F66."""
    names = []
    for number in range(9):
        talk = Talk(session=f"5d0c6e0a-0000-4000-8000-00000000010{number}").user(f"We decided on colour {number}.")
        names.append(om.write(f"{number}.jsonl", talk.text()))
    names.insert(4, om.write("garbage.jsonl", os.urandom(500)))

    run = om("observe", *names)
    assert run.stderr.count("1 message (1 new)") == 9
    assert "om: error: " in run.stderr
    assert len(om("sessions", "--jsonl").lines) == 9
    strict = om("observe", *names, "--strict", "--json", code=65)
    assert [("error" in report) for report in strict.document["files"]].count(True) == 1


def test_all_files_failing_ends_with_the_first_one_s_code_and_prints_nothing(om: Om) -> None:
    run = om("observe", "nowhere.jsonl", om.write("garbage", os.urandom(500)), "--json", code=66)
    assert run.stdout == ""
    assert [json.loads(line)["error"]["exit_code"] for line in run.stderr.splitlines()] == [66, 65]


def test_a_session_can_be_given_and_is_derived_where_the_transcript_names_none(om: Om) -> None:
    chat = json.dumps([{"role": "user", "content": "Where is the harbour?"}, {"role": "assistant", "content": "East."}])
    derived = om("observe", "--json", stdin=chat).document["files"][0]["session_id"]
    assert derived.startswith("openai-")
    grown = json.dumps([*json.loads(chat), {"role": "user", "content": "And the lighthouse?"}])
    (report,) = om("observe", "--json", stdin=grown).document["files"]
    assert (report["session_id"], report["new_messages"]) == (derived, 1), "a grown transcript is the same session"
    (given,) = om("observe", "--json", "--session", "harbour", stdin=chat).document["files"]
    assert (given["session_id"], given["new_messages"]) == ("harbour", 2)
    assert {row["id"] for row in om("sessions", "--jsonl").lines} == {derived, "harbour"}


def test_one_file_may_hold_several_sessions(om: Om) -> None:
    first = tide_story()
    second = Talk(session="5d0c6e0a-0000-4000-8000-000000000002", cwd="/home/ada/moon").user("We decided to use UTC.")
    (report,) = om("observe", "--json", stdin=first.text() + second.text()).document["files"]
    assert report["sessions"] == [first.session, second.session]
    assert report["session_id"] == first.session
    projects = {row["id"]: row["project"] for row in om("sessions", "--jsonl").lines}
    assert projects == {first.session: PROJECT, second.session: "/home/ada/moon"}


def test_the_format_is_recognised_by_content_and_can_be_forced(om: Om) -> None:
    """F67, D16."""
    transcript = om.write("notes.txt", tide_story().text())
    assert om("observe", transcript, "--json").document["files"][0]["format"] == "claude-code"
    unknown = om("observe", transcript, "--format", "klaude", code=2)
    assert unknown.stderr.startswith("om: error: unknown format `klaude`\nhint: formats: ")
    forced = om("observe", "--format", "text", "--json", stdin="User: where is it?\nAssistant: there\n")
    assert forced.document["files"][0]["messages"] == 2


RESPONSES = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where is the tide table?"}]},
    {"type": "reasoning", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"command": "ls"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "tides.json"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In tides.json."}]},
]


def test_items_of_the_responses_api_are_read_in_any_layout(om: Om) -> None:
    """XD8: as lines, as a list, and as a request with its response."""
    lines = "".join(json.dumps(item) + "\n" for item in RESPONSES)
    asked = {"model": "gpt-5.5", "input": "Where is the tide table?"}
    layouts = {
        "lines": lines,
        "list": json.dumps(RESPONSES, indent=1),
        "short": json.dumps(RESPONSES),
        "request": json.dumps({"model": "gpt-5.5", "input": RESPONSES[:2], "output": RESPONSES[2:]}, indent=1),
        "prompt": json.dumps({**asked, "output": RESPONSES[2:]}),
    }
    for name, text in layouts.items():
        (report,) = om("observe", "--json", "--later", "--session", name, stdin=text).document["files"]
        assert (report["format"], report["messages"], report["tool_calls"]) == ("codex", 4, 1), name


def test_what_cannot_be_read_is_refused_by_name_and_no_format_is_hinted_at_that_cannot_fit(om: Om) -> None:
    """XD8: never read as text, neither by itself nor when asked."""
    kimi = json.dumps({"type": "turn.prompt", "time": 1, "input": [{"type": "text", "text": "Hi"}]})
    run = om("observe", stdin=kimi, code=65)
    assert "this is a transcript of Kimi Code, which om cannot read yet\nhint: om reads codex, pi" in run.stderr
    for text in ('{"harbour": "Cuxhaven"}\n', '[{"harbour": "Cuxhaven"}]', kimi):
        assert "--format" not in om("observe", stdin=text, code=65).stderr
        refused = om("observe", "--format", "text", stdin=text, code=65)
        assert "this is JSON, not plain text" in refused.stderr
    assert "`--format text` reads it" in om("observe", stdin="The tide is out.\n", code=65).stderr
    assert om("observe", "--format", "text", "-q", stdin="We decided to sail.\n").code == 0
    assert "--format" not in om("observe", stdin=b"SQLite format 3\0" + bytes(200), code=65).stderr
    assert om("status", "--json").document["messages"] == 1


def test_secrets_do_not_reach_the_store(om: Om) -> None:
    """F46."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    talk = Talk().user(f"We decided to deploy with the token {secret} from now on.")
    run = om("observe", stdin=talk.text())
    assert "1 secret redacted" in run.stderr
    assert secret not in run.stdout + om("log", "--jsonl").stdout + om("context").stdout
    assert secret.encode() not in stored(om.place)


def test_control_characters_of_a_transcript_never_reach_the_terminal(om: Om) -> None:
    """F40."""
    evil = "We decided on \x1b[2Jred\x1b]0;title\x07 and \u202egreen\u202c, always."
    run = om("observe", stdin=Talk(session="a\x1b[2Jb").user(evil).text())
    handle = run.stdout[:8]
    printed = run.stdout + run.stderr + "".join(
        om(*command).stdout for command in (["log"], ["show", handle], ["sessions"], ["context"], ["log", "--jsonl"])
    )  # fmt: skip
    assert "decided" in printed
    assert not set("\x1b\x07\u202e") & set(printed), "nothing that moves a cursor or turns text around"


def test_disabled_means_that_nothing_is_written(om: Om) -> None:
    """C16."""
    run = om("observe", stdin=tide_story().text(), env={"OM_DISABLED": "1"})
    assert run.stdout == ""
    assert "disabled" in run.stderr
    assert om("observe", "--json", env={"OM_DISABLED": "1"}).document == {"schema": 1, "files": []}
    om("note", "remember this", env={"OM_DISABLED": "1"})
    assert not om.has_store


def test_a_directory_can_be_entered_first(om: Om) -> None:
    (om.folder / "deep").mkdir()
    om.write("deep/tide.jsonl", tide_story().text())
    assert om("observe", "-C", "deep", "tide.jsonl").stdout
    assert om("observe", "-C", "nowhere", "tide.jsonl", code=66).stderr.startswith(
        "om: error: cannot change to nowhere"
    )


def test_observing_the_printed_context_again_gives_nothing(om: Om) -> None:
    """F45: what om gave an agent comes back in its transcript."""
    om("observe", stdin=tide_story().text())
    pack = om("context").stdout
    (report,) = om("observe", "--json", stdin=Talk(session="b").user(pack).text()).document["files"]
    assert report["observations"] == 0
    assert (report["messages"], report["skipped"]) == (0, {"injected": 1})


@pytest.mark.parametrize(
    "command",
    [["context", "--to", to] for to in PackFormat] + [["log", *form] for form in ([], ["--json"], ["--jsonl"])],
)
def test_what_om_printed_gives_nothing_when_it_is_pasted_into_a_prompt(om: Om, command: list[str]) -> None:
    """F45: whole, among other words, and cut off."""
    session = tide_story()
    om("observe", stdin=session.text())
    printed = om(*command, *(["--session", session.session] if "context" in command else [])).stdout
    assert "station" in printed
    cut_off = printed[: len(printed) * 3 // 4]
    for number, said in enumerate([printed, f"Here:\n{printed}\nThanks.", f"Here:\n{cut_off}"]):
        (report,) = om("observe", "--json", stdin=Talk(session=f"b{number}").user(said).text()).document["files"]
        assert report["messages"] == (0 if said == printed else 1)
        assert "station" not in json.dumps(report["rows"])


def test_a_pack_of_messages_is_not_taken_in_again(om: Om) -> None:
    """F45: neither its system message nor the turns it repeats."""
    session = tide_story()
    om("observe", stdin=session.text())
    pack = om.write("pack.json", om("context", "--session", session.session, "--to", "messages").stdout)
    (report,) = om("observe", pack, "--json").document["files"]
    assert (report["messages"], report["sessions"], report["skipped"]) == (0, [], {"injected": 1})
    assert len(om("sessions", "--jsonl").lines) == 1


def test_chats_that_begin_alike_are_sessions_of_their_own(om: Om) -> None:
    """The answers tell them apart, whatever the system prompt, which is not kept."""
    chats = [
        json.dumps(
            [{"role": role, "content": text} for role, text in zip(("system", "user", "assistant"), said, strict=True)]
        )
        for said in [
            ("Be brief.", "Run the nightly tests and report", "3 tests failed"),
            ("Be kind.", "Run the nightly tests and report", "All 40 passed"),
            ("Be bold.", "Run the nightly tests and report", "3 tests failed"),
        ]
    ]
    files = [om.write(f"night{number}.json", chat) for number, chat in enumerate(chats)]
    reports = om("observe", *files, "--json").document["files"]
    assert [report["new_messages"] for report in reports] == [2, 2, 0]
    (piped,) = om("observe", "--json", stdin=chats[1]).document["files"]
    assert (piped["session_id"], piped["new_messages"]) == (reports[1]["session_id"], 0)
    assert sorted(row["messages"] for row in om("sessions", "--jsonl").lines) == [2, 2]


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_says_nothing_but_errors(om: Om, quiet: bool) -> None:
    run = om("observe", *(["-q"] if quiet else []), stdin=tide_story().text())
    assert bool(run.stderr) is not quiet
    assert run.stdout
    assert om("observe", "-q", "nowhere.jsonl", code=66).stderr


def test_several_names_for_stdin_read_it_once(om: Om) -> None:
    run = om("observe", "-", Path("-"), stdin=tide_story().text())
    assert run.stderr.splitlines()[1] == "-: no messages"


def test_memory_of_another_tool_is_left_out_and_counted(om: Om) -> None:
    """XD7, S2.9: in each format; what is said beside it is kept."""
    wrapped = "<global_observations>\nAlways use feet. You must never use metres.\n</global_observations>"
    for said in (f"{wrapped}\n\nAlways use tabs.", wrapped):
        chat = json.dumps([{"role": "user", "content": said}, {"role": "assistant", "content": "Fine, I will."}])
        for transcript in (Talk(session="s").user(said).text(), chat):
            (report,) = om("observe", "--json", stdin=transcript).document["files"]
            assert report["skipped"]["injected"] == 1
    assert "tabs" in om("log").stdout
    assert "feet" not in om("log").stdout + om("context", "--session", "s").stdout


SUMMARY = """This session is being continued from a previous conversation that ran out of context.

Analysis:
1. The user asked about the dock.

Summary:
1. **Key Concepts**:
   - The dock uses MySQL 8, which lacks transactional DDL.
     ```sql
     DROP DATABASE dock
     ```

If you need specific details from before compaction, read the full transcript at: /home/a/{}.jsonl
Please continue the conversation from where we left it off."""
BEFORE, AFTER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


def continued(form: str) -> str:
    """A transcript that begins with a summary of another one."""
    told = SUMMARY.format(BEFORE)
    if form == "anthropic":
        said = [{"role": "user", "content": told}, {"role": "user", "content": "Always sort imports."}]
        return json.dumps({"max_tokens": 9, "model": "claude-x", "messages": said})
    if form == "claude-code":
        return Talk(session=AFTER).user(told, isCompactSummary=True).user("Always sort imports.").text()
    payloads = [
        ("session_meta", {"id": AFTER, "cwd": "/dock"}),
        (
            "compacted",
            {
                "message": told.replace(
                    "This session is being continued", "Another language model started to solve this problem"
                )
            },
        ),
        ("event_msg", {"type": "user_message", "message": "Always sort imports."}),
        ("compacted", {"message": "The dock is seen by everyone."}),
    ]
    return "\n".join(json.dumps({"type": kind, "payload": payload}) for kind, payload in payloads)


@pytest.mark.parametrize("form", ["anthropic", "claude-code", "codex"])
def test_a_summary_of_messages_that_are_not_known_is_observed(om: Om, form: str) -> None:
    """XA1, XD5: what it says is stored nowhere else. Later summaries repeat messages."""
    told = "Agent: Key Concepts: The dock uses MySQL 8, which lacks transactional DDL."
    for _ in range(2):
        assert f" {form}, " in om("observe", stdin=continued(form)).stderr
        rows = [row["text"] for row in om("log", "--json").document["observations"]]
        assert sorted(rows) == [told, "User: Always sort imports."]
    assert told in om("compact", "--observer", "rules", "-", stdin=continued(form)).stdout


def test_a_summary_of_known_messages_is_not_observed(om: Om) -> None:
    """XA1: neither of those in the same session nor of those in the session that it names."""
    part = Talk(session=BEFORE).user("Look at the dock.")
    om("observe", "-q", stdin=part.text())
    om("observe", "-q", stdin=continued("claude-code"))
    om("observe", "-q", "--session", BEFORE, stdin=continued("anthropic"))
    assert "MySQL" not in om("log", "--all").stdout
    sessions = {each["id"]: each for each in om("sessions", "--json").document["sessions"]}
    assert sessions[AFTER]["parent"] == BEFORE


@pytest.mark.parametrize("nothing", ["", "\n", "[]", " [ ]\n", '{"messages": []}', '{"messages":[],"model":"x"}'])
def test_an_empty_list_of_messages_is_no_error(om: Om, nothing: str) -> None:
    """XD9: like an empty pipe."""
    run = om("observe", "-", stdin=nothing)
    assert (run.stdout, run.stderr) == ("", "-: no messages\n")
    assert om("compact", "-", stdin=nothing, code=1).stdout == ""
    assert "not a transcript" in om("observe", "-", stdin="[1, 2]", code=65).stderr


def test_unknown_record_types_are_named_only_on_request(om: Om) -> None:
    """XD9: they are counted in any case, and named in --json."""
    talk = tide_story()
    for name in ("frobnicate", "frobnicate", "quux"):
        talk.raw(json.dumps({"type": name, "sessionId": talk.session, "uuid": name}))
    path = om.write("t.jsonl", talk.text())
    assert "3 lines skipped: unknown-type 3\n" in om("observe", path).stderr
    assert "3 lines skipped: unknown-type:frobnicate 2, unknown-type:quux 1\n" in om("observe", "-v", path).stderr
    (report,) = om("observe", "--json", path).document["files"]
    assert report["skipped"]["unknown-type:quux"] == 1


def test_pending_messages_and_messages_are_counted_alike(om: Om) -> None:
    """Interruptions and the like are kept, but not counted."""
    story = Path(__file__).parents[1] / "stories" / "codex_release.jsonl"
    run = om("observe", story, "--later")
    assert "29 messages (29 new), 0 observations, 29 messages pending" in run.stderr
    (session,) = om("sessions", "--json").document["sessions"]
    status = om("status", "--json").document
    assert [(each["messages"], each["pending"]) for each in (session, status)] == [(29, 29)] * 2
