"""`om observe` again and again: what has not changed is not read, and what was left undone is done."""

from __future__ import annotations

import json
import random
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omcli.formats import named
from omcli.memory.message import Message
from omcli.memory.transcript import Identities
from tests.conftest import Om
from tests.e2e.contents import rows
from tests.e2e.killing import Killing
from tests.e2e.transcripts import Talk, long_talk
from tests.shared import TRANSCRIPTS, needs_shared
from tests.soak import first_only
from tests.unit.formats.readings import items_of

STORIES = Path(__file__).parents[1] / "stories"
CHAINS = "claude-code/growing"


def observe(om: Om, path: Path, *options: str, code: int = 0) -> dict[str, Any]:
    (report,) = om("observe", "--json", path, *options, code=code).document["files"]
    assert isinstance(report, dict)
    return report


def content(om: Om) -> tuple[list[dict[str, Any]], list[tuple[str, ...]]]:
    """What the store holds, without ids and times of the run: sessions, and rows with their sources."""
    sessions = om("sessions", "--jsonl").lines
    for session in sessions:
        del session["seen_at"]
    rows = [(row["session"], row["type"], row["text"], *row["message_ids"]) for row in om("log", "--jsonl").lines]
    return sorted(sessions, key=lambda session: str(session["id"])), sorted(rows)


def execute(om: Om, sql: str) -> list[tuple[Any, ...]]:
    return rows(om.place, sql)


def test_observing_again_reads_what_is_new_and_reports_the_whole_file(om: Om) -> None:
    """S0.8."""
    talk = long_talk("tide", 120)
    path = om.write("tide.jsonl", talk.text())
    first = observe(om, path)
    length = path.stat().st_size
    again = observe(om, path)
    assert (first["unread_bytes"], again["unread_bytes"]) == (0, length)
    ratio = first.pop("ratio")
    assert ratio == pytest.approx(first["message_tokens"] / first["observation_tokens"], abs=0.01), "S0.26"
    assert again == first | {
        "new_messages": 0, "known_messages": 120, "unread_bytes": length, "observations": 0, "rows": [],
        "message_tokens": 0, "observation_tokens": 0,
    }  # fmt: skip
    assert om("observe", path).stderr == f"{path}: claude-code, 120 messages (0 new), 0 observations\n"

    path.write_text(talk.user("We decided to print the tides in local time.").text())
    grown = observe(om, path)
    assert (grown["unread_bytes"], grown["messages"], grown["new_messages"]) == (length, 121, 1)
    assert [row["text"] for row in grown["rows"]] == ["User: We decided to print the tides in local time."]


def test_files_are_known_by_where_they_are_not_by_how_they_are_called(om: Om) -> None:
    path = om.write("tide.jsonl", long_talk("tide", 80).text())
    (om.folder / "link.jsonl").symlink_to(path)
    observe(om, path)
    for name in (Path("tide.jsonl"), Path("./home/../tide.jsonl"), om.folder / "link.jsonl"):
        assert observe(om, name)["unread_bytes"] == path.stat().st_size
    copy = om.folder / "copy.jsonl"
    shutil.copy(path, copy)
    assert [observe(om, copy)[key] for key in ("unread_bytes", "new_messages")] == [0, 0]


def test_what_comes_through_a_pipe_is_always_read(om: Om) -> None:
    text = long_talk("tide", 80).text()
    (om.folder / "pipe").mkdir()
    for _ in range(2):
        (report,) = om("observe", "--json", stdin=text).document["files"]
        assert report["unread_bytes"] == 0
    fifo = om.folder / "tide.fifo"
    __import__("os").mkfifo(fifo)
    for _ in range(2):
        writer = threading.Thread(target=fifo.write_text, args=(text,))
        writer.start()
        assert observe(om, fifo)["unread_bytes"] == 0
        writer.join()


def test_faults_of_what_is_not_read_again_are_told_again(om: Om) -> None:
    """F57: with the exit code they have under --strict."""
    path = om.write("tide.jsonl", long_talk("tide", 80).text() + "no json\n")
    told = f"{path}: claude-code, 80 messages (0 new), 0 observations, 1 line skipped: not-json 1\n"
    om("observe", path)
    for _ in range(2):
        assert om("observe", path).stderr == told
        assert om("observe", path, "--strict", code=65).stderr == told
    assert observe(om, path)["unread_bytes"] == path.stat().st_size


def test_a_file_is_refused_as_often_as_it_is_given(om: Om) -> None:
    path = om.write("garbage", bytes(range(256)) * 20)
    good = om.write("tide.jsonl", long_talk("tide", 80).text())
    first = om("observe", path, good).stderr
    assert om("observe", path, good).stderr == first.replace("(80 new), 20", "(0 new), 0").replace(
        first.splitlines()[-1], om("observe", good).stderr.rstrip()
    )
    om("observe", path, code=65)


def test_what_was_kept_but_not_observed_is_observed_by_the_next_run_of_an_unchanged_file(om: Om) -> None:
    """F21: the run that held the lane went away after the messages were kept."""
    path = om.write("tide.jsonl", long_talk("tide", 80).text())
    execute_first(om)
    execute(om, "INSERT INTO sessions (id) VALUES ('tide')")
    execute(
        om, "INSERT INTO leases SELECT number, 'observe', 'elsewhere:1:1', '2999-01-01T00:00:00.000Z' FROM sessions"
    )
    kept = om("observe", "--json", "--wait", "0", path, code=75).document["files"][0]
    assert (kept["new_messages"], kept["observations"]) == (80, 0)
    execute(om, "DELETE FROM leases")
    after = observe(om, path)
    assert (after["unread_bytes"], after["new_messages"]) == (path.stat().st_size, 0)
    assert after["observations"] >= 20
    assert om("status", "--json").document["pending"] == 0


def execute_first(om: Om) -> None:
    """Makes the store."""
    om("note", "a store is made")


def test_a_crash_between_the_messages_and_the_bookmark_costs_one_reading(om: Om) -> None:
    """F22: messages are kept, and nothing says how far."""
    path = om.write("tide.jsonl", long_talk("tide", 80).text())
    observe(om, path)
    execute(om, "DELETE FROM bookmarks")
    assert [observe(om, path)[key] for key in ("unread_bytes", "new_messages", "known_messages")] == [0, 0, 80]
    assert observe(om, path)["unread_bytes"] == path.stat().st_size


@pytest.mark.parametrize("parts", first_only([2, 10]))
def test_runs_killed_while_a_file_grows_leave_what_one_run_over_the_whole_file_does(
    parts: int, new_om: Callable[[], Om], chance: random.Random
) -> None:
    """F22, F59: kill -9 at random points, and the file is cut anywhere, also in the middle of lines."""
    undisturbed, killed = new_om(), new_om()
    whole = long_talk("one", 240 * parts).text().encode()
    killing, died = Killing(chance=chance), 0
    killing.undisturbed(undisturbed, "observe", "-q", undisturbed.write("one.jsonl", whole))
    cuts = sorted(chance.randrange(len(whole)) for _ in range(parts))
    for cut in [*cuts, len(whole)]:
        path = killed.write("one.jsonl", whole[:cut])
        died += killing.killed(killed, "observe", "-q", path)
        if chance.random() < 0.3:
            killed("observe", "-q", path)
    killed("observe", "-q", path)
    assert died > 0, "some runs must have been killed before their end"
    one, other = content(killed), content(undisturbed)
    assert one[0] == other[0]
    assert {row[2:] for row in one[1]} >= {row[2:] for row in other[1] if row[1] == "decision"}
    (covered,) = execute(
        killed, "SELECT sum((SELECT count(*) FROM messages WHERE seq > after AND seq <= through)) FROM batches"
    )
    assert covered == (240 * parts,), "every message is in one batch"


def test_runs_at_the_same_time_on_a_file_that_grows_lose_and_double_nothing(om: Om) -> None:
    """F20, T75."""
    talk = long_talk("one", 600)
    path = om.write("one.jsonl", "")
    for end in (200, 201, 600):
        path.write_text("".join(f"{line}\n" for line in talk.lines[:end]))
        processes = [om.start("observe", "-q", "--wait", "30", str(path)) for _ in range(3)]
        for process in processes:
            _, stderr = process.communicate(timeout=120)
            assert process.returncode == 0, stderr
    report = observe(om, path)
    assert (report["unread_bytes"], report["new_messages"], report["messages"]) == (path.stat().st_size, 0, 600)
    (found,) = om("sessions", "--jsonl").lines
    assert (found["messages"], found["pending"]) == (600, 0)


def test_a_rewritten_file_is_read_whole_and_adds_only_what_is_new(om: Om) -> None:
    """F2: compacted or edited by another program, with new lines at its end."""
    talk = long_talk("tide", 120)
    path = om.write("tide.jsonl", talk.text())
    observe(om, path)
    path.write_text(
        "".join(f"{line}\n" for line in talk.lines[40:100]) + Talk(session="tide").user("New words.").text()
    )
    report = observe(om, path)
    assert (report["unread_bytes"], report["messages"], report["new_messages"]) == (0, 61, 1)
    assert om("sessions", "--jsonl").lines[0]["messages"] == 121


@pytest.mark.parametrize("line", [0, 40, 119])
def test_a_grown_file_whose_earlier_bytes_changed_is_read_from_its_beginning(om: Om, line: int) -> None:
    """F2: a message is rewritten in as many bytes, and a line added. Only a digest of all bytes before can tell."""
    talk = long_talk("tide", 120)
    path = om.write("tide.jsonl", talk.text())
    observe(om, path)
    (word,) = re.findall(r'"(?:text|content)": "(\w+)', talk.lines[line])
    talk.lines[line] = talk.lines[line].replace(f'"{word}', f'"{word[::-1]}', 1)
    path.write_text(talk.user("New words.").text())
    report = observe(om, path)
    assert (report["unread_bytes"], report["messages"], report["new_messages"]) == (0, 121, 2)
    assert om("sessions", "--jsonl").lines[0]["messages"] == 122, "the former words stay, and none is there twice"
    again = observe(om, path)
    assert (again["unread_bytes"], again["messages"], again["new_messages"]) == (path.stat().st_size, 121, 0)
    assert om("sessions", "--jsonl").lines[0]["messages"] == 122


@needs_shared
@pytest.mark.parametrize("chain", [0, 1])
def test_a_transcript_that_grew_under_one_name_is_read_on_and_comes_to_the_same(
    new_om: Callable[[], Om], chain: int
) -> None:
    """S0.8, F68: the steps of a real session, each written over the one before."""
    steps = sorted(sorted((TRANSCRIPTS / CHAINS).iterdir())[chain].glob("step-*.jsonl"))
    growing, at_once = new_om(), new_om()
    read_on = []
    for step in steps:
        path = growing.write("session.jsonl", step.read_bytes())
        report = observe(growing, path)
        read_on.append(report["unread_bytes"] > 0)
        fresh = observe(at_once, step)
        same = ("messages", "asides", "side_messages", "images", "skipped", "redactions", "sessions", "new_messages")
        assert {key: report[key] for key in same} == {key: fresh[key] for key in same}
    assert sum(read_on) >= len(steps) - 2, "from the second step with 60 lines on"
    assert content(growing)[0] == content(at_once)[0]


def test_the_keys_that_a_report_has_do_not_depend_on_how_much_was_read(om: Om) -> None:
    path = om.write("tide.jsonl", long_talk("tide", 80).text())
    first, again = (json.loads(om("observe", "--json", path).stdout)["files"][0] for _ in range(2))
    del first["ratio"]  # without a row there is none
    assert list(first) == list(again)


FORMS = [("claude_code_refactor.jsonl", "claude-code"), ("codex_release.jsonl", "codex"), ("pi_bugfix.jsonl", "pi"),
         ("chat_openai.jsonl", "openai"), ("anthropic_body.json", "anthropic")]  # fmt: skip


@pytest.mark.file_store("its migrations")
@pytest.mark.parametrize(("story", "form"), FORMS)
def test_a_store_of_schema_1_takes_its_transcripts_in_no_second_time(om: Om, story: str, form: str) -> None:
    """T69, S0.8: there results had another identity, and there were no bookmarks."""
    path = om.write(story, (STORIES / story).read_text(encoding="utf-8"))
    before = observe(om, path)
    reader = named(form)
    known = Identities(before["session_id"], format_name=form, copies=reader.copies)
    messages = [item for item in items_of(reader, path.read_bytes()) if isinstance(item, Message)]
    formerly = [(present, former) for present, former in map(known.with_earlier, messages) if former]
    assert formerly
    for present, former in formerly:
        execute(om, f"UPDATE identities SET identity = x'{former}' WHERE identity = x'{present}'")
    execute(om, "DELETE FROM bookmarks")
    rows = content(om)
    again = observe(om, path)
    assert (again["new_messages"], again["observations"]) == (0, 0)
    assert again["sessions"] == before["sessions"]
    assert content(om) == rows
