"""How `--session` names a session: id, beginning, `last`; XD1."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Om
from tests.e2e.transcripts import PROJECT, Talk

ONE = "3f9a1c2e-0000-4000-8000-000000000001"
TWO = "3f9a1c2e-1111-4000-8000-000000000002"
NAMED = "task-12"
UNKNOWN = "5d0c6e0a-0000-4000-8000-0000000000ff"

READING = [
    ["log"], ["items"], ["export", "--to", "zora"], ["history"], ["pending"], ["context"],
    ["context", "--working-memory"], ["context", "--tier", "cross"],
    ["reflect", "--dry-run"], ["compact", "--dry-run"], ["prune", "--keep-last", "1", "--dry-run"], ["tick"],
    ["tick", "--check"], ["forget", "--match", "tide"], ["consolidate", "--dry-run"],
]  # fmt: skip
"""Command lines that need a session of the store."""


@pytest.fixture
def told(om: Om) -> Om:
    """Three sessions, the last one by its own time read first."""
    for session, day, text in ((NAMED, "2026-02-12", "A"), (ONE, "2026-02-10", "B"), (TWO, "2026-02-11", "C")):
        talk = Talk(session=session, cwd=PROJECT)
        talk.begin = talk.begin.fromisoformat(f"{day}T09:00:00+00:00")
        om("observe", "-q", stdin=talk.user(f"Always use station {text} for the tide tables.").text())
    return om


def sessions_of(om: Om, reference: str, *options: str) -> set[str]:
    return {row["session"] for row in om("log", "--jsonl", "--session", reference, *options).lines}


@pytest.mark.parametrize(
    ("reference", "session"),
    [(ONE, ONE), (ONE[:10], ONE), (TWO[:10], TWO), ("task", NAMED), (NAMED, NAMED), ("last", NAMED)],
)
def test_an_id_its_beginning_and_last_name_a_session(told: Om, reference: str, session: str) -> None:
    assert sessions_of(told, reference) == {session}
    assert told("context", "--json", "--session", reference).document["session"] == session


def test_every_handle_that_is_listed_is_taken(told: Om) -> None:
    """The beginning is longer if several sessions share its first eight characters."""
    rows = told("sessions", "--jsonl").lines
    assert [row["handle"] for row in rows] == [NAMED, TWO[:10], ONE[:10]]
    for row in rows:
        assert sessions_of(told, row["handle"]) == {row["id"]}


@pytest.mark.parametrize("command", READING)
def test_an_unknown_session_is_an_error_in_every_command(told: Om, command: list[str]) -> None:
    """F66: not an empty list, and not the pack of another session."""
    meant = f"did you mean `{NAMED}`?"
    for reference, hint in (("tusk-12", meant), (NAMED.upper(), meant), ("abc", "`om sessions` lists them")):
        run = told(*command, "--session", reference, code=66)
        error, hinted = run.stderr.splitlines()
        assert (run.stdout, error) == ("", f"om: error: unknown session `{reference}`")
        assert hinted.startswith(f"hint: {hint}")
    run = told(*command, "--session", "3f9a1c2e", code=66)
    assert run.stderr == (f"om: error: 2 sessions begin with `3f9a1c2e`\nhint: `{ONE}` or `{TWO}`\n")
    assert "`--session` is empty" in told(*command, "--session", "", code=2).stderr


def test_the_error_is_a_document_of_its_own(told: Om) -> None:
    run = told("log", "--json", "--session", "abc", code=66)
    assert json.loads(run.stderr)["error"]["slug"] == "unknown-session"
    refused = told("compact", "--json", "--session", "abc", code=66)
    assert refused.document == {"schema": 1, "replace": False, "reason": "unknown-session"}


def test_a_hook_may_name_a_session_that_has_no_messages_yet(told: Om) -> None:
    """S0.8: what other sessions left behind is for a new one, too."""
    pack = told("context", "--session", UNKNOWN, "-C", told.folder, env={"OM_SCOPE": "global"})
    assert "Always use station" in pack.stdout
    assert f"unknown session `{UNKNOWN}`: only what other sessions left behind" in pack.stderr
    for reference in (UNKNOWN, "ses_4a5b6c7d8e9f0a1b"):
        told("tick", "--session", reference, code=1)
        told("consolidate", "--session", reference)
    told("context", "--session", UNKNOWN[:-1], code=66)
    assert told("log", "--session", UNKNOWN, code=66).stdout == ""


def test_a_pack_of_other_sessions_is_that_of_the_named_one(told: Om) -> None:
    """XD1: a handle, a beginning and `last` give the same rows as the whole id."""
    for reference, session in ((ONE[:10], ONE), ("task", NAMED), ("last", NAMED)):
        packs = [told("context", "--tier", "cross", "--session", name) for name in (reference, session)]
        assert packs[0].stdout == packs[1].stdout != ""
        assert [pack.stderr for pack in packs] == ["", ""]


@pytest.mark.parametrize("session", [UNKNOWN, "mine"])
@pytest.mark.parametrize("options", [(), ("--json",), ("--working-memory",), ("--tier", "tail")])
def test_a_new_session_of_the_agent_is_no_other_session(told: Om, session: str, options: tuple[str, ...]) -> None:
    """XD1: the variable is taken as if `--session` named it."""
    env = {"CLAUDE_CODE_SESSION_ID": session, "OM_SCOPE": "global"}
    taken, named = told("context", *options, env=env), told("context", *options, "--session", session, env=env)
    assert (taken.stdout, taken.stderr) == (named.stdout, named.stderr)
    assert f"unknown session `{session}`" in taken.stderr
    assert f"unknown session `{session}`" in told("reflect", "--dry-run", env=env).stderr


@pytest.mark.parametrize("command", READING)
def test_the_agent_s_own_session_is_never_an_error(told: Om, command: list[str]) -> None:
    code = 1 if command[0] in ("tick", "compact", "forget") else 0
    told(*command, "--session", "mine", env={"CLAUDE_CODE_SESSION_ID": "mine"}, code=code)


def test_what_stores_something_starts_a_session_unless_a_handle_names_one(told: Om) -> None:
    """`task-1` is not short for `task-12`."""
    chat = Talk(session="other").user("And station D?").text()
    told("observe", "-q", "--session", "task-1", stdin=chat)
    assert {row["id"] for row in told("sessions", "--jsonl").lines} == {ONE, TWO, NAMED, "task-1"}
    told("note", "of one", "--session", ONE[:11])
    told("note", "of the last", "--session", "last")
    told("note", "of a new one", "--session", "3f9a1c2f")
    found = {row["text"]: row["session"] for row in told("log", "--kind", "note", "--jsonl").lines}
    assert found == {"of one": ONE, "of the last": NAMED, "of a new one": "3f9a1c2f"}
    assert "2 sessions begin with" in told("note", "x", "--session", "3f9a1c2e", code=66).stderr
    assert "2 sessions begin with" in told("observe", "-", "--session", "3f9a1c2e", stdin=chat, code=66).stderr


def test_a_printed_handle_names_its_session_for_writing_too(om: Om) -> None:
    """XD1: other beginnings start a session, and a note says so."""
    om("observe", "-q", "--format", "openai", stdin='{"role": "user", "content": "Always use tabs."}\n')
    (row,) = om("sessions", "--jsonl").lines
    assert (row["handle"], len(row["id"]) > len(row["handle"])) == (row["id"][:8], True)
    assert om("note", "by handle", "--session", row["handle"]).stderr.count("new session") == 0
    assert {each["session"] for each in om("log", "--kind", "note", "--jsonl").lines} == {row["id"]}
    begun = om("note", "by a beginning", "--session", row["id"][:7])
    assert f"new session `{row['id'][:7]}`, not 1 session like `{row['id']}`" in begun.stderr
    assert "new session" not in om("note", "again", "--session", row["id"][:7]).stderr
    assert "new session" not in om("note", "other", "--session", "unlike").stderr
    assert {each["id"] for each in om("sessions", "--jsonl").lines} == {row["id"], row["id"][:7], "unlike"}


def test_no_session_is_the_last_one_of_an_empty_store(om: Om) -> None:
    for command in (["log"], ["note", "x"], ["observe", "-"]):
        run = om(*command, "--session", "last", stdin="", code=66)
        assert "no sessions yet" in run.stderr
    assert not om.has_store


def test_sessions_are_sorted_by_their_own_time_or_as_asked(told: Om) -> None:
    told("observe", "-q", "--later", stdin=Talk(session=ONE, cwd="/a").user("More.").user("And more.").text())

    def listed(*options: str) -> list[str]:
        return [row["id"] for row in told("sessions", "--jsonl", *options).lines]

    assert listed() == listed("--sort", "last") == [NAMED, TWO, ONE]
    assert listed("--sort", "first") == [ONE, TWO, NAMED]
    assert listed("--sort", "messages")[0] == listed("--sort", "pending", "-n", "1")[0] == ONE
    assert listed("--since", "2026-02-11", "--sort", "first") == [TWO, NAMED]
    assert "'size' is not one of" in told("sessions", "--sort", "size", code=2).stderr


def test_a_session_without_a_title_is_listed_with_its_first_prompt(om: Om) -> None:
    om("observe", "-q", stdin=Talk(session="s").user("Where does\nthe gauge stand?").user("Hello?").text())
    (row,) = om("sessions", "--jsonl").lines
    assert (row["prompt"], "title" in row) == ("Where does\nthe gauge stand?", False)
    assert om("sessions").stdout.splitlines()[1].endswith("Where does the gauge stand?")
    om("forget", "--match", "gauge")
    assert "gauge" not in om("sessions").stdout + om("sessions", "--json").stdout


def test_completion_offers_sessions_with_their_titles_or_prompts(told: Om) -> None:
    env = {
        "_OM_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_ARGS": "om log --session ",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    shown = told(env=env).stdout
    assert ONE in shown
    assert "Always use station B" in shown


@pytest.mark.parametrize("shell", ["fish", "zsh"])
def test_words_in_brackets_are_no_markup_there(om: Om, shell: str) -> None:
    om("observe", "-q", stdin=Talk(session="s").user("[draft] [bold]Where does the gauge stand?").text())
    line = {"_TYPER_COMPLETE_ARGS": "om log --session ", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert "[draft] [bold]Where" in om(env={"_OM_COMPLETE": f"complete_{shell}", **line}).stdout


STRANGE = [
    "tab\tnl\nx", "a long id with \x1b[31mred in it", "two  spaces ", "turned \u202e round\u2028", "\x07\x07\x07\x07",
]  # fmt: skip


@pytest.mark.parametrize("session", STRANGE)
def test_an_id_that_cannot_be_printed_is_escaped_and_its_handle_is_taken(om: Om, session: str) -> None:
    """XD1: in a transcript and as an option; what is printed can be typed."""
    om("observe", "-q", "--session", session, stdin="User: Always use station A for the tide tables.\n")
    assert "new session" not in om("note", "Use station B", "--session", session).stderr
    om("observe", "-q", stdin=Talk(session=session).user("Never use station C.").text())
    [row] = om("sessions", "--jsonl").lines
    assert row["id"].isprintable()
    assert row["handle"] == om("sessions").stdout.splitlines()[1].partition("  ")[0]
    for command in READING:
        run = om(*command, "--session", row["handle"], code=None)
        assert run.code in (0, 1), command
        assert run.stderr.replace("\n", "").isprintable(), command
    assert om("note", "Use station D", "--session", row["handle"]).stderr == ""
    assert [each["id"] for each in om("sessions", "--jsonl").lines] == [row["id"]]


def test_a_session_without_messages_is_listed_last(om: Om) -> None:
    """XD1: a file that is known already brings nothing into the session that is named for it."""
    tides = om.write("tides.jsonl", Talk(session="tides").user("Always use metres for tides.").text())
    om("observe", "-q", tides)
    om("observe", "-q", "--session", "session-of-nothing", tides)
    listed = [(each["id"], each["messages"]) for each in om("sessions", "--jsonl").lines]
    assert listed[0] == ("tides", 1)
    assert [each["id"] for each in om("sessions", "--jsonl", "-n", "1").lines] == ["tides"]


@pytest.mark.parametrize(("said", "hint"), [("Walk along the quay", "--format text"), ("[1]", "om reads")])
def test_a_format_that_cannot_fit_is_not_proposed(om: Om, said: str, hint: str) -> None:
    """XD8: a value in JSON is no prose."""
    assert hint in om("observe", "-", stdin=said, code=None).stderr
