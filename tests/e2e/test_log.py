"""`om log` and `om show`: looking at what was written down."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, Talk, tide_story

LINE = re.compile(r"[0-9a-f]{8} \[\d{4}-\d\d-\d\d \d\d:\d\d\] (high  |medium|low   ) [a-z_]+( done| resolved)?: \S.*")
UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
MOON = Talk(session="5d0c6e0a-0000-4000-8000-00000000000c", cwd="/home/ada/moon").user("We decided to use UTC.")


@pytest.fixture
def told(om: Om) -> Om:
    om("observe", "--now", "2026-02-10T10:00:00Z", stdin=tide_story().text())
    om("observe", "--now", "2026-02-11T10:00:00Z", stdin=MOON.text())
    return om


def test_every_row_is_one_line_with_columns_that_stay_where_they_are(told: Om) -> None:
    lines = told("log").stdout.splitlines()
    assert len(lines) == len(told("log", "--jsonl").lines) > 5
    assert all(LINE.fullmatch(line) for line in lines), lines


def test_what_was_said_breaks_neither_a_line_nor_a_pack(om: Om) -> None:
    """T74, S0.25, S0.28: closing tags, quotes, NUL, line ends, emoji and scripts; priorities are words, not signs."""
    said = 'We decided: "a" </om-memory> </observation-group>\r\nand CRITICAL \0 \U0001f989 水位 stay.'
    om("observe", "-q", stdin=Talk(cwd='/home/a "b"').user(said).text())
    [line] = om("log").stdout.splitlines()
    assert LINE.fullmatch(line)
    assert line.endswith(
        'User: We decided: "a" </om-memory> </observation-group> and CRITICAL \ufffd \U0001f989 水位 stay.'
    )
    for to in ("text", "markdown"):
        pack = om("context", "--tier", "session", "--to", to).stdout
        assert pack.count("</om-memory>") == 1
        *_, told, closing = pack.splitlines()
        assert closing == "</om-memory>"
        assert told.removeprefix("- ").startswith(
            'CRITICAL User: We decided: "a" <\\/om-memory> </observation-group> and '
        )


def test_json_rows_have_the_promised_keys_and_no_nulls(told: Om) -> None:
    """S4.9, S1.11: id, session, type, content, time, importance, source and the messages it came from."""
    rows = told("log", "--jsonl").lines
    assert told("log", "--json").document == {"schema": 1, "observations": rows}
    promised = {"id", "session", "kind", "type", "priority", "importance", "text", "observed_at", "event_at"}
    promised |= {"message_ids", "source", "tokens"}
    for row in rows:
        assert promised <= set(row), row
        assert None not in row.values()
        assert UUID7.fullmatch(row["id"])
        assert INSTANT.fullmatch(row["observed_at"])
        assert INSTANT.fullmatch(row["event_at"])
        assert row["message_ids"]
    assert any(row.get("status") for row in rows)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--session", MOON.session], {MOON.session}),
        (["--project", "/home/ada/moon"], {MOON.session}),
        (["--project", PROJECT], {tide_story().session}),
        (["--since", "2026-02-10", "--until", "2026-02-10"], {tide_story().session, MOON.session}),
        (["--until", "2026-02-09"], set()),
        (["--since", "2026-02-10T09:08Z"], set()),
        (["--since", "2026-02-10T09:07:00+00:00"], {tide_story().session}),
        (["--since", "90m", "--now", "2026-02-10T10:00Z"], {tide_story().session, MOON.session}),
        (["--since", "12h", "--now", "2026-02-12T10:00Z"], set()),
        (["--since", "7d", "--now", "2026-02-12T10:00Z", "--last", "1"], {MOON.session}),
        (["--last", "0"], set()),
        (["--kind", "note"], set()),
        (["--kind", "observation", "--kind", "note", "--last", "1"], {MOON.session}),
    ],
)
def test_filters_narrow_the_log(told: Om, filters: list[str], expected: set[str]) -> None:
    assert {row["session"] for row in told("log", "--jsonl", *filters).lines} == expected


@pytest.mark.parametrize("follow", [[], ["--follow"]])
def test_a_project_that_is_unknown_is_said_so(told: Om, follow: list[str]) -> None:
    process = told.start("log", "--project", "/no/where", *follow)
    assert process.stderr is not None
    assert process.stderr.readline().decode() == "om: unknown project /no/where; `om sessions` shows them\n"
    process.terminate()
    process.communicate(timeout=60)


def test_a_known_session_or_project_without_matching_rows_is_no_news(told: Om) -> None:
    told("note", "x", "--session", "to-come", "-C", told.home)
    for option, value in (
        ("--session", MOON.session),
        ("--session", "to-come"),
        ("--project", PROJECT),
        ("--project", told.home),
    ):
        run = told("log", option, value, "--last", "0")
        assert (run.stdout, run.stderr) == ("", ""), value
    assert told("log", "--project", "/no/where", "--quiet").stderr == ""


def test_types_and_priorities_can_be_given_several_times(told: Om) -> None:
    rows = told("log", "--jsonl").lines
    high = told("log", "--jsonl", "--priority", "high").lines
    assert high == [row for row in rows if row["priority"] == "high"] != rows
    wanted = told("log", "--jsonl", "--type", "decision", "--type", "instruction").lines
    assert wanted == [row for row in rows if row["type"] in ("decision", "instruction")] != []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--since", "2026-02-31"],
        ["--since", "yesterday"],
        ["--until", ""],
        ["--since", "2026-02-11", "--until", "2026-02-10"],
        ["--priority", "urgent"],
        ["--type", "wish"],
        ["--last", "-1"],
        ["--json", "--jsonl"],
        ["--json", "--follow"],
        ["--now", "soon"],
        ["--frob"],
    ],
)
def test_what_makes_no_sense_is_a_usage_error_with_a_message_and_nothing_on_stdout(
    om: Om, arguments: list[str]
) -> None:
    """T65: impossible dates, from after to, values that do not exist."""
    run = om("log", *arguments, code=2)
    assert run.stdout == ""
    assert run.stderr.startswith(("om: error: ", '{"schema":1,"error":{"slug":"usage"'))


def test_an_empty_log_is_no_error_and_makes_no_store(om: Om) -> None:
    assert om("log").stdout == ""
    assert om("log", "--json").document == {"schema": 1, "observations": []}
    assert not om.has_store


def test_follow_goes_on_with_rows_as_they_are_written(told: Om) -> None:
    follower = told.start("log", "--follow", "--last", "1", "--jsonl")
    assert follower.stdout is not None
    try:
        assert json.loads(follower.stdout.readline())["session"] == MOON.session
        told("note", "the tide turns")
        assert json.loads(follower.stdout.readline())["text"] == "the tide turns"
    finally:
        follower.terminate()
        assert follower.wait(60) == 143
        follower.communicate()


def test_follow_may_begin_before_there_is_a_store(om: Om) -> None:
    follower = om.start("log", "--follow")
    assert follower.stdout is not None
    try:
        while not om.has_store:
            assert follower.poll() is None
            time.sleep(0.05)
        om("note", "the tide turns")
        assert follower.stdout.readline().endswith(b"the tide turns\n")
    finally:
        follower.kill()
        follower.communicate()


def test_show_prints_a_row_and_the_messages_it_came_from(told: Om) -> None:
    decision = next(row for row in told("log", "--jsonl").lines if "lower case" in row["text"])
    for reference in (decision["id"], decision["id"][-8:]):
        shown = told("show", reference).stdout
        assert "The station ids are in stations.json, we decided to keep them lower case." in shown
        assert "2026-02-10 09:06 · user" in shown
        assert decision["id"] in shown
    document = told("show", decision["id"][-8:], "--json").document
    assert document["observation"] == decision | {"project": PROJECT, "coverage": "none", "state": "in sight"}
    (message,) = document["messages"]
    assert message["role"] == "user"
    assert message["id"] in decision["message_ids"]


def test_show_takes_the_id_of_a_message_too(told: Om) -> None:
    decision = next(row for row in told("log", "--jsonl").lines if "lower case" in row["text"])
    document = told("show", decision["message_ids"][0], "--json").document
    assert set(document) == {"schema", "messages"}
    assert document["messages"][0]["text"].startswith("The station ids")


def test_show_asks_for_more_than_three_digits(told: Om) -> None:
    handle = told("log").stdout[:8]
    run = told("show", handle[:3], code=65)
    assert run.stderr == f"om: error: `{handle[:3]}` is too short\nhint: give at least 4 digits of the id\n"
    assert "too short" not in told("show", handle[:4], code=None).stderr


def test_show_of_an_unknown_id_is_exit_65_with_a_hint(told: Om) -> None:
    run = told("show", "ffffffff", code=65)
    assert run.stdout == ""
    assert run.stderr.startswith("om: error: ")
    assert "\nhint: " in run.stderr
    assert json.loads(told("show", "ffffffff", "--json", code=65).stderr)["error"]["slug"] == "unknown-id"


def test_a_row_is_shown_with_its_project_and_messages_with_the_directory_they_were_said_in(om: Om) -> None:
    """S2.13, XD3: a message's own only where it is another one than its session's."""
    talk = Talk().user("We decided to draw the tides in blue.")
    talk.user("We decided to keep the harbours in YAML.", cwd="/home/ada/harbours")
    om("observe", "-q", stdin=talk.text())
    tides, harbours = (row["id"] for row in om("log", "--jsonl").lines)
    shown = om("show", harbours).stdout
    assert "\nproject       /home/ada/harbours\n" in shown
    assert f"\nproject       {PROJECT}\n" in om("show", tides).stdout
    assert "· user · /home/ada/harbours · " in shown
    document = om("show", harbours, "--json").document
    assert document["observation"]["project"] == document["messages"][0]["cwd"] == "/home/ada/harbours"
    assert "cwd" not in om("show", tides, "--json").document["messages"][0]
    note = om("note", "We ship on Friday", "--session", "s", "--json").document["observation"]["id"]
    assert "project" in om("show", note, "--json").document["observation"]


def test_rows_written_by_hand_are_in_the_log_and_can_be_shown(om: Om) -> None:
    line = om("note", "we ship on Friday", "--type", "decision").stdout
    assert om("log").stdout == line
    assert "we ship on Friday" in om("show", line[:8]).stdout


def test_colour_is_for_terminals_or_for_those_who_ask(told: Om) -> None:
    plain = told("log").stdout
    assert "\x1b" not in plain
    assert "\x1b[" in told("log", "--color", "always").stdout
    assert "\x1b[" in told("log", env={"FORCE_COLOR": "1"}).stdout
    assert told("log", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout == plain
    assert told("log", "--color", "never", env={"FORCE_COLOR": "1"}).stdout == plain


def test_the_log_can_be_cut_short_by_its_reader(told: Om) -> None:
    """F93: `om log | head -1` ends with SIGPIPE, which a shell calls 141, and without a word."""
    talk = Talk(session="long")
    for prompt in range(600):
        talk.user(f"We decided on number {prompt}: {'very ' * 60}sure.")
    told("observe", "-q", stdin=talk.text())
    script = f"{shlex.join(told.command('log'))} | head -1; echo ${{PIPESTATUS[0]}}"
    run = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=told.environment(), timeout=300, check=False
    )
    assert run.stderr == ""
    assert run.stdout.splitlines()[-1] == "141"


def test_an_id_of_several_messages_is_not_said_to_be_unknown(om: Om) -> None:
    """Ids that a format counts are the same in each session; which sessions those are is told."""
    said = json.dumps({"id": "f-1", "role": "user", "content": "The tide is at 12:04."})
    for session in ("one", "two"):
        om("observe", "--format", "openai", "--session", session, stdin=said)
    shown = om("show", "f-1", code=65).stderr
    assert "2 messages have the id `f-1`" in shown
    assert "they are in: one, two" in shown
    assert "no row has the id `f-20`" in om("show", "f-20", code=65).stderr


def test_only_what_is_wanted_decided_or_broken_has_high_priority(om: Om) -> None:
    """XB4: edits, commits and results are ordinary rows, so that a mark means something."""
    talk = Talk().user("Let load_tides skip empty lines. Never touch compose.yaml.")
    edit = {"file_path": f"{PROJECT}/tides.py", "old_string": "a", "new_string": "if not line.strip():\n    continue"}
    talk.call("Edit", edit).result("ok")
    talk.call("Bash", {"command": "pytest"}).result("Exit code 1\nE   KeyError: 'moon'", is_error=True)
    talk.call("Bash", {"command": "git commit -am skip"}).result("[main 1f2e3d4] Skip empty lines\n 1 file changed")
    talk.assistant("I committed the change to load_tides, but test_moon still fails with a KeyError.")
    om("observe", "-q", stdin=talk.user("Thanks, look at the moon next.").text())
    high = {row["type"] for row in om("log", "--jsonl").lines if row["priority"] == "high"}
    rest = {row["type"] for row in om("log", "--jsonl").lines if row["priority"] != "high"}
    assert high == {"request", "instruction", "command_error", "blocker"}
    assert {"file_modified", "outcome"} <= rest
    pack = om("context", "--tier", "session").stdout
    assert "\nModified tides.py" in pack
    assert "\nCRITICAL Ran: pytest → " in pack
