"""`om export` and `om import`: memory as other designs write it."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from typing import Any

import pytest

from omcli.exchange import NAMES
from omcli.memory.ports import Lane
from tests.architecture.hot_path import loaded as modules
from tests.conftest import Om
from tests.e2e.reflecting import noticed, reply
from tests.e2e.reflecting import told as reflection
from tests.e2e.scripts import script
from tests.e2e.transcripts import PROJECT, Talk, tide_story

FORMATS = pytest.mark.parametrize("name", NAMES)
SESSION = tide_story().session
SAID = ("text", "priority", "status")


@pytest.fixture
def told(om: Om) -> Om:
    """A store with a session, a note and what a session of another project left behind."""
    om("observe", "-q", "--now", "2026-02-10T10:00:00Z", stdin=tide_story().text())
    om("note", "we ship on Friday", "--priority", "high", "--now", "2026-02-10T11:00:00Z")
    return om


def rows(om: Om, *filters: str) -> list[dict[str, Any]]:
    return om("log", "--jsonl", *filters).lines


def contents(om: Om, *filters: str, keys: tuple[str, ...] = SAID) -> list[tuple[Any, ...]]:
    """What rows say; an open status is not written by any notation."""
    return [
        (*(None if row.get(key) == "open" else row.get(key) for key in keys), row.get("event_at", "")[:16])
        for row in rows(om, *filters)
    ]


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("lango")])
def test_what_is_exported_is_imported_with_priorities_statuses_and_dates(
    told: Om, new_om: Callable[[], Om], name: str
) -> None:
    """S0.15, S2.11, S2.37, S3.7, C22, T74: into a store that knows nothing, and out of it again to the byte."""
    text = told("export", "--to", name, "--session", SESSION).stdout
    other = new_om()
    imported = other("import", "--format", name, "--session", SESSION, stdin=text)
    assert contents(other) == contents(told, "--session", SESSION)
    assert len(imported.stdout.splitlines()) == len(rows(other)) > 5
    again = other("export", "--to", name).stdout
    assert again == text


@pytest.mark.parametrize("name", ["lango", "lango-jsonl"])
def test_lango_s_paragraphs_keep_the_texts(told: Om, new_om: Callable[[], Om], name: str) -> None:
    """S1.11"""
    text = told("export", "--to", name, "--session", SESSION).stdout
    other = new_om()
    other("import", "--format", name, "--session", SESSION, stdin=text)
    assert [row[0] for row in contents(other)] == [row[0] for row in contents(told, "--session", SESSION)]
    assert {row["priority"] for row in rows(other)} == {"medium"}, "D14"


@FORMATS
def test_the_same_file_twice_adds_nothing(told: Om, new_om: Callable[[], Om], name: str) -> None:
    """V14, T22: duplicates are counted; also where they are in one file."""
    text = told("export", "--to", name).stdout
    other = new_om()
    first = other("import", "--format", name, "--json", "-", stdin=text).document["files"][0]
    assert (first["known"], first["observations"]) == (0, len(first["rows"]))
    again = other("import", "--format", name, "--json", "-", stdin=text).document["files"][0]
    assert (again["observations"], again["known"], again["rows"]) == (0, first["observations"], [])
    assert len(rows(other)) == first["observations"]


@FORMATS
def test_importing_into_the_store_it_came_from_adds_nothing(told: Om, name: str) -> None:
    """V14: what an observer wrote is known as well."""
    before = rows(told)
    text = told("export", "--to", name, "--session", SESSION).stdout
    run = told("import", "--format", name, "--session", SESSION, stdin=text)
    assert (run.stdout, rows(told)) == ("", before)
    assert f"{len(before) - 1} known" in run.stderr


@FORMATS
def test_an_export_is_not_taken_for_a_transcript(told: Om, name: str) -> None:
    """F45: rows quote what was said; observing them would be remembering memory."""
    text = told("export", "--to", name).stdout
    run = told("observe", stdin=text, code=65)
    assert "this is exported memory, not a transcript\nhint: use `om import` for it" in run.stderr
    assert told("sessions", "--json").document["sessions"][0]["messages"] == 8


def test_an_imported_row_says_where_it_comes_from(om: Om) -> None:
    """S0.13, S3.8: source, original id and mark stay; our own id is a UUIDv7."""
    text = (
        '<observation-group id="mem_V1StGXR8Z5jd" range="a:b" kind="observation" cwd="/home/ada/x &quot;y&quot;">\n'
        "* \U0001f7e1 \U0001f7e2 (2026-02-10 14:32) Uses pnpm\n</observation-group>\n"
    )
    om("import", "-q", "--format", "duet-groups", "--session", "s", stdin=text)
    [row] = rows(om)
    assert (row["source"], row["kind"], row["type"], row["priority"]) == ("import", "observation", "fact", "medium")
    assert row["metadata"] == {
        "imported_from": "duet-groups",
        "original_id": "mem_V1StGXR8Z5jd",
        "cwd": '/home/ada/x "y"',
        "first_message": "a",
        "last_message": "b",
        "mark": "\U0001f7e1 \U0001f7e2",
    }
    assert om("export", "--to", "duet-groups").stdout == text
    assert "original_id   mem_V1StGXR8Z5jd" in om("show", row["id"]).stdout


def test_the_mark_of_a_bracket_is_kept(om: Om) -> None:
    """S3.8: `[?]` is not quite medium."""
    text = "Date: 2026-02-10\n- [?] 14:32 perhaps pnpm\n  - [i] 14:33 since last week\n"
    om("import", "-q", "--format", "pi", stdin=text)
    parent, child = rows(om)
    assert (parent["priority"], parent["metadata"]["mark"]) == ("medium", "[?]")
    assert child["metadata"]["under"] == parent["id"]
    assert om("export", "--to", "pi").stdout == text


ELSEWHERE = "elsewhere:4711:1"
"""A process of another machine, which may still be running."""
TWO = Talk(session="two").user("We decided to use UTC.", uuid="a").user("Thanks.", uuid="b")


def pending(om: Om, session: str = "two") -> int:
    found: int = om("context", "--session", session, "--json").document["pending"]
    return found


def keep_only(om: Om, talk: Talk) -> None:
    """Takes a transcript in while somebody else is at its session, so that nothing covers its messages."""
    owner, far = ELSEWHERE, "2036-01-01T00:00:00.000Z"
    with om.open() as store:
        store.leases.claim(talk.session, Lane.OBSERVE, owner=owner, now="2026-02-10T00:00:00.000Z", expires_at=far)
        om("observe", "-q", "--wait", "0", stdin=talk.text(), code=75)
        store.leases.release(talk.session, Lane.OBSERVE, owner=owner)


def duet(reach: str, *texts: str) -> str:
    """A group."""
    lines = "".join(f"* \U0001f534 (2026-02-10 09:00) {text}\n" for text in texts)
    return f'<observation-group id="g-{reach}" range="{reach}">\n{lines}</observation-group>\n'


def imported(om: Om, text: str, *arguments: str, format_name: str = "duet-groups") -> dict[str, Any]:
    """The report of an import."""
    report: dict[str, Any] = om("import", "--format", format_name, "--json", *arguments, stdin=text).document["files"][
        0
    ]
    return report


def test_a_range_that_was_observed_elsewhere_counts_as_observed(om: Om) -> None:
    """T15, S2.12: the session is the one that the messages belong to."""
    keep_only(om, TWO)
    assert pending(om) == 2
    report = imported(om, duet("a:a", "Decided on UTC"))
    assert (report["covered"], report["missing"], report["sessions"]) == (1, 0, ["two"])
    assert pending(om) == 1
    [row] = rows(om)
    assert (row["session"], row["message_ids"]) == ("two", ["a"])
    om("observe", "-q", stdin=TWO.text())
    assert pending(om) == 0
    assert [each["text"] for each in rows(om)] == ["Decided on UTC"], "the decision in message a is not observed again"


def test_what_holds_no_row_moves_no_cursor(om: Om) -> None:
    """T15: passes that change nothing never move a cursor."""
    keep_only(om, TWO)
    report = imported(om, duet("a:b"))
    assert (report["covered"], report["observations"], pending(om)) == (0, 0, 2)


def test_the_cursor_stands_at_the_highest_position(om: Om) -> None:
    """T16: a record that comes later and covers an earlier position moves nothing back."""
    keep_only(om, TWO)
    report = imported(om, duet("a:b", "Both") + duet("a:a", "The first alone"))
    assert (report["covered"], report["observations"], pending(om)) == (2, 2, 0)
    assert om("export", "--to", "duet-groups").stdout.count(' range="a:b"') == 1
    assert om("export", "--to", "duet-groups").stdout.count(' range="a:a"') == 1


def test_messages_that_come_after_their_rows_are_covered_by_importing_again(om: Om) -> None:
    text = duet("a:b", "Both")
    assert imported(om, text, "--session", "two")["missing"] == 1
    keep_only(om, TWO)
    report = imported(om, text, "--session", "two")
    assert (report["covered"], report["known"], report["observations"]) == (2, 1, 0)
    assert pending(om) == 0


def test_zora_s_ranges_are_places_and_half_open(om: Om) -> None:
    """T10, S0.13, C18: of 10 messages the 3 oldest are covered, 7 wait, and the export shows [0,3)."""
    talk = Talk(session="ten")
    for number in range(10):
        talk.user(f"Message number {number} says nothing.")
    keep_only(om, talk)
    block = {
        "id": "obs_1770714000000_k3x9",
        "sessionId": "ten",
        "createdAt": "2026-02-10T09:00:00.000Z",
        "tier": "session",
        "observations": "[2026-02-10 09:00] CRITICAL The first three",
        "sourceMessageRange": [0, 3],
        "estimatedTokens": 13,
    }
    assert imported(om, json.dumps(block), format_name="zora-jsonl")["covered"] == 3
    assert pending(om, "ten") == 7
    [exported] = om("export", "--to", "zora-jsonl").lines
    assert exported == block
    later = block | {"id": "obs_2_b", "sourceMessageRange": [3, 10], "observations": "[2026-02-10 09:09] NOTE The rest"}
    assert imported(om, json.dumps(later), format_name="zora-jsonl")["covered"] == 7
    assert pending(om, "ten") == 0
    assert [each["sourceMessageRange"] for each in om("export", "--to", "zora-jsonl").lines] == [[0, 3], [3, 10]]


def test_what_we_observed_is_exported_with_what_its_batch_covered(told: Om) -> None:
    """S0.13, S1.11, S2.11, S2.13: ids, session, times, tier, range by place and by id, directory, tokens."""
    [block, note] = told("export", "--to", "zora-jsonl").lines
    assert re.fullmatch(r"obs_[0-9]{13}_[0-9a-f]{12}", block["id"])
    assert (block["sessionId"], block["tier"], block["sourceMessageRange"]) == (SESSION, "session", [0, 8])
    assert block["createdAt"].startswith("2026-02-10T10:00:00")
    assert block["estimatedTokens"] == -(-len(block["observations"]) * 10 // 35)
    assert (note["tier"], note["kind"], note["sessionId"]) == ("cross-session", "note", "")
    ids = [json.loads(line)["uuid"] for line in tide_story().lines]
    text = told("export", "--to", "duet-groups", "--session", SESSION).stdout
    assert f' range="{ids[0]}:' in text
    assert f' kind="observation" cwd="{PROJECT}">\n* ' in text
    [first, *_] = told("export", "--to", "lango-jsonl").lines
    assert (first["session_key"], first["source_start_index"], first["source_end_index"]) == (SESSION, 0, 7)
    assert set(first) == {
        "session_key", "content", "token_count", "source_start_index", "source_end_index", "created_at",
    }  # fmt: skip


def test_an_export_holds_the_rows_that_were_asked_for(told: Om) -> None:
    told("observe", "-q", stdin=Talk(session="moon", cwd="/home/ada/moon").user("We decided to use UTC.").text())

    def texts(*arguments: str) -> str:
        return told("export", "--to", "zora", *arguments).stdout

    assert "UTC" in texts("--session", "moon")
    assert "Friday" not in texts("--session", "moon")
    assert "UTC" in texts("--project", "/home/ada/moon")
    assert "Cuxhaven" not in texts("--project", "/home/ada/moon")
    assert "unknown session `nobody`" in told("export", "--to", "zora", "--session", "nobody", code=66).stderr
    assert len(texts().splitlines()) == len(rows(told))
    assert len(texts("--all").splitlines()) == len(rows(told, "--all"))


def test_an_export_into_a_file_is_the_user_s_alone(told: Om) -> None:
    """The store is as well."""
    run = told("export", "--to", "zora", "memory.txt")
    file = told.folder / "memory.txt"
    assert run.stdout == ""
    assert file.read_text(encoding="utf-8") == told("export", "--to", "zora").stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    document = told("export", "--to", "zora", "memory.txt", "--json").document
    assert document == {"schema": 1, "format": "zora", "path": "memory.txt"}
    document = told("export", "--to", "zora", "--json").document
    assert document == {"schema": 1, "format": "zora", "text": file.read_text(encoding="utf-8")}
    assert "cannot write" in told("export", "--to", "zora", "no/where.txt", code=73).stderr
    assert told("import", "--format", "zora", "memory.txt", "--db", told.folder / "other.db").stdout


def test_lasting_items_belong_to_no_session_and_keep_their_category(om: Om) -> None:
    """T40, S0.15: the lines of cross-session.jsonl; an unknown type is knowledge."""
    lines = [
        {"id": "i1", "type": "behavior", "category": "behavior/reflected", "summary": "Runs the linter first"},
        {"id": "i2", "type": "rumour", "category": "rumour/reflected", "summary": "Somebody prefers tabs"},
        {"id": "i3", "type": "skill", "summary": "[2026-02-10 09:00] CRITICAL Deploys with make ship"},
    ]
    om("import", "-q", "--format", "zora-jsonl", "--session", "s", stdin="\n".join(map(json.dumps, lines)))
    found = rows(om)
    assert [(row["kind"], row["type"], row.get("session")) for row in found] == [
        ("item", "behavior", None), ("item", "knowledge", None), ("item", "skill", None),
    ]  # fmt: skip
    assert [line["category"] for line in om("export", "--to", "zora-jsonl").lines] == [
        "behavior/reflected", "rumour/reflected", "skill",
    ]  # fmt: skip
    assert "Deploys with make ship" in om("context").stdout


def test_an_item_that_repeats_an_observation_is_imported(om: Om, new_om: Callable[[], Om]) -> None:
    """XD4: the session's row is forgotten with the session, the item lasts."""
    om("import", "-q", "--format", "zora", stdin="[2026-05-01 10:00] CRITICAL The mast is red\n")
    om("note", "--item", "The mast is red")
    written = om("export", "--to", "duet-groups").stdout
    other = new_om()
    for _ in range(2):
        other("import", "-q", "--format", "duet-groups", stdin=written)
        assert contents(other, keys=("kind", "text")) == contents(om, keys=("kind", "text"))
        assert len(other("items", "--jsonl").lines) == 1
    for _ in range(2):  # a format without kinds: what is an item here is known
        om("import", "-q", "--format", "zora", stdin=om("export", "--to", "zora").stdout)
        assert len(rows(om)) == 2


@FORMATS
def test_only_some_formats_say_which_rows_are_lasting(om: Om, new_om: Callable[[], Om], name: str) -> None:
    """XD4: imported from the others, an item with the words and the time of a row is that row."""
    om("import", "-q", "--format", "zora", stdin="[2026-05-01 10:00] CRITICAL The mast is red\n")
    om("note", "--item", "The mast is red", "--now", "2026-05-01T10:00:00Z")
    other = new_om()
    other("import", "-q", "--format", name, stdin=om("export", "--to", name).stdout)
    kinds = ["observation", "item"] if name in ("duet-groups", "zora-jsonl") else ["observation"]
    assert [row["kind"] for row in rows(other)] == kinds


@FORMATS
def test_secrets_and_what_breaks_out_stay_outside(om: Om, name: str) -> None:
    """F46, T74, V15: redaction and cleaning as for any input."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    om("note", 'x </observation-group> <private>y</private> "z" \u6c34\u4f4d \U0001f989')
    text = om("export", "--to", name).stdout
    assert text.count("</observation-group>") == (name != "duet-headings"), "its own end, or none that matters"
    hostile = text.replace("\u6c34\u4f4d", f"token {secret} \0 <private>gone</private>")
    report = imported(om, hostile, format_name=name)
    assert (report["observations"], report["redactions"]) == (1, {"github-token": 1, "private": 1})
    said = rows(om)[-1]["text"]
    assert said.startswith('x </observation-group> "z" token [redacted:github-token] \ufffd')
    assert secret not in om("log", "--jsonl").stdout


def test_reflections_without_a_mark_are_of_high_priority(om: Om) -> None:
    """D14, S1.12"""
    imported(om, '{"session_key":"s","content":"Prefers UTC","generation":2}', format_name="lango-jsonl")
    imported(om, "## Conversation Memory\n\n### Summary\n\nPrefers tabs\n", format_name="lango")
    imported(om, '<observation-group id="x">\n* no mark\n</observation-group>')
    assert [(row["kind"], row["priority"], row.get("generation")) for row in rows(om)] == [
        ("reflection", "high", 2), ("reflection", "high", 1), ("observation", "low", None),
    ]  # fmt: skip
    [first, *_] = om("export", "--to", "lango-jsonl").lines
    assert (first["generation"], first["content"]) == (2, "Prefers UTC")


def test_one_bad_file_does_not_stop_the_others(om: Om) -> None:
    """Invariant 10; the exit codes of `om observe`."""
    good = om.write("good.txt", "[2026-02-10 09:00] NOTE a\nno row\n")
    bad = om.write("bad.txt", "nothing\n")
    run = om("import", "--format", "zora", bad, good, "missing.txt")
    assert run.stdout.endswith(" [2026-02-10 09:00] low    fact: a\n")
    assert "good.txt: zora, 1 new, 1 line skipped: no row" in run.stderr
    assert "bad.txt: nothing in it is memory as `zora` writes it" in run.stderr
    assert "missing.txt: no such file" in run.stderr
    om("import", "--format", "zora", bad, code=65)
    om("import", "--format", "zora", "missing.txt", code=66)
    om("import", "--format", "zora", good, "--strict", code=65)
    om("import", "--format", "paper", good, code=2)
    om("import", good, code=65)
    om("import", "--format", "zora", good, "--session", " ", code=2)
    om("export", "--to", "paper", code=2)
    assert len(rows(om)) == 1
    assert om("import", "--format", "zora", stdin="").stdout == ""
    assert "disabled" in om("import", "--format", "zora", good, env={"OM_DISABLED": "1"}).stderr


def test_a_file_of_forgotten_rows_is_memory_too(om: Om) -> None:
    """D6: its rows are left out and counted; that is no mistake in the file."""
    text = "[2026-02-10 09:00] NOTE the tide is at noon\n"
    om("import", "-q", "--format", "zora", stdin=text)
    om("forget", "-y", rows(om)[0]["id"])
    run = om("import", "--format", "zora", stdin=text)
    assert (run.stdout, rows(om)) == ("", [])
    assert "1 line skipped: forgotten" in run.stderr


def test_a_session_that_somebody_is_at_is_left_to_them(om: Om) -> None:
    """Invariant 1: what they observe would be in vain; nothing is lost, and importing again goes on."""
    keep_only(om, TWO)
    with om.open() as store:
        far = "2036-01-01T00:00:00.000Z"
        store.leases.claim("two", Lane.OBSERVE, owner=ELSEWHERE, now="2026-02-10T00:00:00.000Z", expires_at=far)
        run = om("import", "--format", "duet-groups", "--wait", "0", stdin=duet("a:b", "Both"), code=75)
    assert "is at the observe lane of session two" in run.stderr
    assert (pending(om), rows(om)) == (2, [])


def test_only_export_and_import_load_what_others_write(told: Om) -> None:
    """Invariant 12."""
    for command in (["context"], ["log", "--notation", "emoji"], ["context", "--notation", "brackets"], ["status"]):
        assert not {module for module in modules(told, *command) if module.startswith("omcli.exchange")}
    loaded = modules(told, "export", "--to", "pi")
    assert "omcli.exchange.pi" in loaded
    assert "omcli.exchange.duet" not in loaded


def test_ids_that_other_sessions_have_as_well_are_found_among_those_that_wait(om: Om) -> None:
    """T15: numbered messages are in every session."""
    keep_only(om, Talk(session="one").user("Good morning.", uuid="a", promptId="1"))
    keep_only(om, TWO)
    assert imported(om, duet("a:b", "Both"), "--session", "two")["covered"] == 2
    assert (pending(om, "one"), pending(om)) == (1, 0)


def test_a_secret_in_place_of_an_id_stays_outside(om: Om) -> None:
    """F46"""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    imported(om, duet("a:b", "Both").replace("a:b", f"{secret}:b", 2).replace("g-", ""))
    assert secret not in om("log", "--jsonl").stdout + om("export", "--to", "duet-groups").stdout


def test_an_imported_session_is_a_session(om: Om) -> None:
    """XD2: it is listed with its own times, folded and packed, and its transcript may come later."""
    notes = "Date: 2026-03-12\n- [!] 08:41 The harbour code is 4711.\n- [i] 08:42 We decided to use port 8080.\n"
    om("import", "--format", "pi", "--session", "harbour", stdin=notes)
    (row,) = om("sessions", "--jsonl").lines
    assert (row["id"], row["agent"], row["messages"], row["observations"]) == ("harbour", "om", 0, 2)
    assert (row["first_at"], row["last_at"]) == ("2026-03-12T08:41:00.000Z", "2026-03-12T08:42:00.000Z")
    assert row["project"] == str(om.folder)
    assert om("status", "--json").document["sessions"] == 1
    assert om("reflect", "--session", "harb", "--json").document["read"] == 2
    assert om("compact", "--session", "harbour", "--json", code=1).document["reason"] == "empty"
    assert "4711" in om("context", "--session", "last").stdout
    om("observe", "-q", stdin=Talk(session="harbour", cwd="/home/ada/harbour").user("And the sluice?").text())
    (row,) = om("sessions", "--jsonl").lines
    assert (row["agent"], row["project"], row["messages"]) == ("claude-code", "/home/ada/harbour", 1)


@pytest.mark.parametrize(
    ("reach", "given", "at"),
    [
        ("a:d", "\U0001f7e1 (23:55) x", "2026-02-10T23:55"),
        ("a:d", "\U0001f7e1 (0:05) x", "2026-02-11T00:05"),
        ("a:a", "\U0001f7e1 (14:33) x", "2026-02-10T14:33"),
        ("a:d", "\U0001f7e1 (2026-02-09 08:00) y\n* \U0001f7e1 (14:33) x", "2026-02-09T14:33"),
        ("a:d", "Date: Feb 8, 2026\n* \U0001f7e1 (14:33) x", "2026-02-08T14:33"),
    ],
)
def test_a_time_of_day_is_of_the_day_of_its_messages(om: Om, reach: str, given: str, at: str) -> None:
    """XD4: `🟡 (14:33)` has the date of the row or the heading above it, otherwise that of its messages."""
    talk = Talk(session="night")
    for uuid, minute in zip("abcd", ("10T23:50", "10T23:58", "11T00:02", "11T00:10"), strict=True):
        talk.user(f"Message {uuid} says nothing.", uuid=uuid, timestamp=f"2026-02-{minute}:00.000Z")
    keep_only(om, talk)
    imported(om, f'<observation-group id="g" range="{reach}">\n* {given}\n</observation-group>\n')
    row = rows(om)[-1]
    assert (row["text"], row["event_at"][:16], row["priority"]) == ("x", at, "medium")


def test_a_time_of_an_unknown_day_stays_in_the_text(om: Om) -> None:
    """XD4: it is not of today."""
    imported(om, '<observation-group id="g" range="x:y">\n* \U0001f7e1 (14:33) a\n</observation-group>\n')
    [row] = rows(om)
    assert (row["text"], row.get("event_at")) == ("(14:33) a", None)


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("duet-groups", '<observation-group id="g">\n* \U0001f7e1 (14:33) a\n</observation-group>\n', "(14:33) a"),
        ("pi", "Date: 2026-02-31\n- [i] 10:00 a\n", "(2026-02-31 10:00) a"),
    ],
)
def test_a_date_that_is_missing_or_does_not_exist_is_reported(om: Om, name: str, given: str, text: str) -> None:
    """XD4: the row keeps what is written, and has the time of the import."""
    run = om("import", "--format", name, "-", "--now", "2026-11-23T02:15:00Z", stdin=given)
    assert run.stderr == f"-: {name}, 1 new, 1 row without a valid date\n"
    assert [(row["text"], row.get("event_at")) for row in rows(om)] == [(text, None)]
    (report,) = om("import", "--format", name, "-", "--json", stdin=given).document["files"]
    assert (report["observations"], report["known"], report.get("undated")) == (0, 1, None)


def test_tags_of_groups_may_share_a_line(om: Om) -> None:
    """XD4: with each other and with rows; inside a row, a tag is only mentioned."""
    opening, closing = "<observation-group id='{}' range=\"a:b\">", "</observation-group>"
    imported(
        om,
        f"{opening.format(1)}* \U0001f7e1 (2026-02-09 08:00) a{closing}{opening.format(2)}\n"
        f"* \U0001f7e1 (2026-02-09 08:01) b {closing} c\n* \U0001f7e1 (2026-02-09 08:02) d{closing}\n",
    )
    found = [(row["text"], row["metadata"]["original_id"]) for row in rows(om)]
    assert found == [("a", "1"), (f"b {closing} c", "2"), ("d", "2")]


def test_rows_of_two_projects_are_two_groups(om: Om, new_om: Callable[[], Om]) -> None:
    """XD4, S2.11, S2.13: each group has the directory of its rows, and each row that of its group."""
    group = (
        '<observation-group id="{0}" range="a:b" kind="observation" cwd="/srv/{0}">\n'
        "* \U0001f534 (2026-02-10 09:00) {0}\n"
    )
    text = "\n".join(f"{group.format(name)}</observation-group>\n" for name in ("tide", "moon"))
    imported(om, text, "--session", "two")
    assert [(row["text"], om("show", row["id"], "--json").document["observation"]["project"]) for row in rows(om)] == [
        ("tide", "/srv/tide"), ("moon", "/srv/moon"),
    ]  # fmt: skip
    assert om("export", "--to", "duet-groups").stdout == text
    mixed = om("export", "--to", "duet-groups", "--session", "two").stdout
    other = new_om()
    other("import", "-q", "--format", "duet-groups", "--session", "two", stdin=mixed)
    assert other("export", "--to", "duet-groups").stdout == mixed


def test_a_session_that_moves_is_exported_by_project(om: Om, new_om: Callable[[], Om]) -> None:
    """XD4, S2.11, S2.13: groups of one batch have its range, each with the directory of its messages."""
    talk = Talk(session="two", cwd="/srv/tide").user("We decided to use UTC in tide.", uuid="a")
    om("observe", "-q", stdin=talk.user("We decided to use port 8080.", uuid="b", cwd="/srv/moon").text())
    text = om("export", "--to", "duet-groups").stdout
    assert re.findall('range="(.*?)" kind="observation" cwd="(.*?)"', text) == [
        ("a:b", "/srv/tide"), ("a:b", "/srv/moon"),
    ]  # fmt: skip
    other = new_om()
    other("import", "-q", "--format", "duet-groups", "--session", "two", stdin=text)
    assert other("export", "--to", "duet-groups").stdout == text


def test_a_reflection_has_the_range_of_its_sources(om: Om, new_om: Callable[[], Om]) -> None:
    """XD4, S2.11: from the first to the last message that its rows were made from."""
    noticed(om, "The crane is greased each week", "The berth is paved", "The crane is greased every week again")
    model = script(om, reply(reflection("Crane greased each week", "o1", "o3")))
    om("reflect", "--session", "s", "--model", model.model)
    [made] = [row for row in rows(om) if row["kind"] == "reflection"]
    messages = om("context", "--session", "s", "--json").document["messages"]
    first, _, last = (message["id"] for message in messages)
    assert made["message_ids"] == [first, last]
    for name in ("duet-groups", "duet-headings"):
        text = om("export", "--to", name, "--session", "s").stdout
        assert f"{first}:{last}" in text
        assert text.count('" range="') + text.count("\n_range: `") == text.count("<observation-g") + text.count(
            "## Group"
        )
        other = new_om()
        other("import", "-q", "--format", name, "--session", "s", stdin=text)
        assert other("export", "--to", name).stdout == text


def test_the_records_of_duet_s_store_are_read(om: Om) -> None:
    """XD4, S2.37, C19: id, kind, date and time of day; what they hold is a group, or rows without one."""
    mem = {"id": "mem_V1StGXR8Z5jd", "createdAt": 1_770_714_000_000, "kind": "observation", "priority": "medium"}
    held = '<observation-group id="x" range="a:b" cwd="/p">\n* \U0001f7e1 (08:32) Uses pnpm\n* \u2705 Built\n'
    records = [
        {**mem, "observedDate": "2026-02-09", "timeOfDay": "08:40", "content": f"{held}</observation-group>"},
        {
            **mem,
            "id": "mem_2",
            "kind": "reflection",
            "observedDate": "2026-02-08",
            "content": "\U0001f534 Never by day",
        },
        {"id": "mem_3"},
    ]
    report = imported(om, json.dumps(records), "--session", "s")
    assert (report["observations"], report["skipped"]) == (3, {"no record": 1})
    assert [(row["kind"], row["text"], row["event_at"][:16], row["priority"]) for row in rows(om)] == [
        ("observation", "Uses pnpm", "2026-02-09T08:32", "medium"),
        ("observation", "Built", "2026-02-09T08:40", "high"),
        ("reflection", "Never by day", "2026-02-10T09:00", "high"),
    ]
    assert [row["metadata"]["original_id"] for row in rows(om)] == ["mem_V1StGXR8Z5jd"] * 2 + ["mem_2"]
    assert "this is exported memory" in om("observe", stdin=json.dumps(records), code=65).stderr


def test_duet_s_own_ids_name_the_messages_of_its_state(om: Om) -> None:
    """XD4, S2.10, S2.12: `state.json` is a transcript, and a range in its ids covers its messages."""
    messages = [
        {"role": "user", "content": "List the shed.", "timestamp": 1_770_714_000_000, "id": "msg_user_1"},
        {"role": "assistant", "content": [{"type": "toolCall", "id": "t1", "name": "bash", "arguments": {}}],
         "stopReason": "toolUse", "responseId": "r1", "timestamp": 1_770_714_001_000},
        {"role": "toolResult", "toolCallId": "t1", "toolName": "bash", "content": [], "timestamp": 1_770_714_002_000},
        {"role": "assistant", "content": "Empty.", "stopReason": "stop", "responseId": "r2"},
    ]  # fmt: skip
    state = {"sessionId": "session_1", "state": {"options": {"model": "m"}, "agent": {"messages": messages}}}
    om("observe", "-q", "--later", stdin=json.dumps(state))
    assert pending(om, "session_1") == 4
    assert imported(om, duet("msg_user_1:msg_tool_t1", "The shed was listed"))["covered"] == 3
    assert imported(om, duet("msg_assistant_r2:msg_assistant_r2", "It is empty"))["covered"] == 1
    assert {row["session"] for row in rows(om)} == {"session_1"}
