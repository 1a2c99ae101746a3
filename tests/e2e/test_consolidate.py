"""`om consolidate`: what is new is taken in, what waits is observed, all is looked after; each run a fresh process."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from omcli.memory.ports import Lane
from tests.conftest import Om
from tests.e2e.contents import Contents, assert_covered_once, connected, contents, number_of, stored
from tests.e2e.scripts import UNTIL, always, pending, rows, script
from tests.e2e.transcripts import Talk, long_talk, tide_story
from tests.integration.sqlite.running import heed_permissions
from tests.replying import answer
from tests.soak import first_only

STORIES = Path(__file__).parents[1] / "stories"
NOW = ("--now", "2026-04-02T04:00:00Z")
"""Some days after what the stories tell."""


def agents_home(om: Om) -> None:
    """A home directory in which three agents have kept their sessions."""
    for story, place in (
        ("claude_code_refactor.jsonl", ".claude/projects/-home-ada-src-parcel/5f0c3c1e.jsonl"),
        ("codex_release.jsonl", ".codex/sessions/2026/03/24/rollout-2026-03-24T14-00-00-019d1c4e.jsonl"),
        ("pi_bugfix.jsonl", ".pi/agent/sessions/--home-ada-src-kelp--/2026-03-01_1.jsonl"),
    ):
        target = om.home / place
        target.parent.mkdir(parents=True)
        shutil.copy(STORIES / story, target)


def grown_old(*files: Path) -> None:
    """Files that were written ten days ago."""
    for file in files:
        os.utime(file, (time.time() - 10 * 86_400,) * 2)


def sessions(om: Om) -> dict[str, dict[str, Any]]:
    """What `om sessions` lists, by agent."""
    return {each["agent"]: each for each in om("sessions", "--json").document["sessions"]}


def short_talk(**fields: Any) -> Talk:
    """A session of three messages."""
    return (
        Talk(**fields)
        .user("Always spell the station names in capitals. Is the harbour of Husum listed?")
        .assistant("It is listed as station 41.")
        .user("We decided to drop station 41 from the tables.")
    )


# What is taken in


def test_what_agents_keep_in_their_own_folders_is_found_observed_and_not_read_again(om: Om) -> None:
    """D12, F9, F10, S0.7: sessions of three agents, ten days old; the second run has nothing to do."""
    agents_home(om)
    grown_old(*om.home.rglob("*.jsonl"))
    run = om("consolidate", *NOW)
    assert re.match(r"consolidated: 3 files, \d+ messages, \d+ observations", run.stderr)
    assert run.stdout == ""
    found = sessions(om)
    assert set(found) == {"claude-code", "codex", "pi"}
    assert all(each["pending"] == 0 and each["observations"] for each in found.values())
    assert_covered_once(om.place)
    again = om("consolidate", "--json", *NOW).document
    assert (again["files"], again["unchanged_files"], again["sessions"]) == ([], 3, [])
    assert om("consolidate", *NOW).stderr == "consolidated: nothing to do\n"


def test_places_follow_the_variables_of_the_agents(om: Om) -> None:
    """T70: CLAUDE_CONFIG_DIR and CODEX_HOME name other folders, in place of those in the home directory."""
    agents_home(om)
    shutil.move(om.home / ".claude", om.folder / "claude")
    shutil.copytree(om.home / ".codex", om.folder / "codex")
    shutil.rmtree(om.home / ".codex" / "sessions")
    (om.folder / "codex" / "archived_sessions").mkdir()
    shutil.copy(om.home / ".pi/agent/sessions/--home-ada-src-kelp--/2026-03-01_1.jsonl", om.folder / "codex")
    env = {"CLAUDE_CONFIG_DIR": str(om.folder / "claude"), "CODEX_HOME": str(om.folder / "codex")}
    om("consolidate", *NOW, env=env)
    assert set(sessions(om)) == {"claude-code", "codex", "pi"}


def test_it_works_where_cron_starts_it(om: Om) -> None:
    """F97, S0.31: with nothing but HOME and PATH, in the user's own store; -q says nothing."""
    agents_home(om)
    env = {"HOME": str(om.home), "PATH": "/usr/bin:/bin", "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "TZ": "UTC"}
    told = [
        subprocess.run(
            [sys.executable, "-m", "omcli", "consolidate", *arguments],
            env=env, cwd="/", capture_output=True, text=True, check=True,
        )
        for arguments in (("-q",), ())
    ]  # fmt: skip
    assert (told[0].stdout, told[0].stderr) == ("", "")
    assert told[1].stderr.startswith("consolidated: ")
    stores = list(om.home.rglob("memory.db"))
    assert len(stores) == 1
    assert number_of(stores[0], "sessions") == 4, "three, and the one that the lease is of"
    assert number_of(stores[0], "leases") == 0


def test_a_file_that_has_grown_is_read_on_and_one_that_was_taken_in_elsewhere_is_known(om: Om) -> None:
    """S0.7: what the store has bookmarks of is a known place, with the session it was taken in under."""
    story = tide_story()
    lines = story.text().splitlines(keepends=True)
    transcript = om.write("elsewhere.jsonl", "".join(lines[:5]))
    om("observe", "--session", "mine", transcript)
    transcript.write_text("".join(lines), encoding="utf-8")
    done = om("consolidate", "--json", *NOW).document
    assert [(file["path"], file["new_messages"]) for file in done["files"]] == [(str(transcript), 3)]
    assert [each["id"] for each in om("sessions", "--json").document["sessions"]] == ["mine"]
    assert pending(om) == 0
    transcript.unlink()
    assert om("consolidate", "--json", *NOW).document["files"] == []


def test_of_a_folder_files_count_that_are_called_like_transcripts(om: Om) -> None:
    """A file that is named itself may be called anything."""
    place = om.folder / "place"
    place.mkdir()
    for name in ("a.jsonl", "b.ndjson", "c.json", "d.txt", "e"):
        (place / name).write_text(Talk(session=name).user(f"We decided on {name}.").text(), encoding="utf-8")
    done = om("consolidate", "--json", "--place", place, "--place", place / "e", *NOW).document
    assert [Path(file["path"]).name for file in done["files"]] == ["a.jsonl", "b.ndjson", "c.json", "e"]


@pytest.mark.parametrize("command", ["watch", "consolidate"])
def test_what_is_hidden_counts_where_it_is_named_and_not_below(om: Om, command: str) -> None:
    """One rule for what looks through folders: agents keep transcripts under hidden ones."""
    place = om.home / ".agent"
    for name in ("a.jsonl", "sessions/b.jsonl", ".trash/c.jsonl", "sessions/.d.jsonl", "sessions/.old/e.jsonl"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(Talk(session=Path(name).stem).user(f"We decided on {name}.").text(), "utf-8")
    (place / "linked").symlink_to(om.home / "elsewhere")
    (om.home / "elsewhere").mkdir()
    (om.home / "elsewhere" / "f.jsonl").write_text(Talk(session="f").user("We decided on it.").text(), "utf-8")
    hidden = place / "sessions" / ".d.jsonl"
    arguments: list[str | Path] = ["--place", place, "--place", hidden]
    if command == "watch":
        arguments = ["--once", place, hidden]
    om(command, *arguments)
    assert {row["id"] for row in om("sessions", "--jsonl").lines} == {"a", "b", ".d", "f"}


def test_a_folder_that_cannot_be_looked_into_is_told(om: Om) -> None:
    """And costs nothing else of its place; a place that cannot be looked into itself is exit 66 where it is named."""
    place = om.folder / "place"
    (place / "closed").mkdir(parents=True)
    (place / "a.jsonl").write_text(tide_story().text(), "utf-8")

    def denied(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            om.command("consolidate", *NOW, *arguments), env=om.environment(), cwd=om.folder,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=heed_permissions, check=False,
        )  # fmt: skip

    (place / "closed").chmod(0)
    run = denied("--place", place)
    assert (run.returncode, "closed: cannot be looked at: Permission denied" in run.stderr) == (0, True), run.stderr
    assert "1 file, 8 messages" in run.stderr
    run = denied("--place", place / "closed")
    (place / "closed").chmod(0o700)
    assert (run.returncode, "Permission denied" in run.stderr) == (66, True), run.stderr


def test_nothing_is_made_where_there_is_nothing_to_take_in(om: Om) -> None:
    """A cron job on a new machine: exit 0, a line, no store, no backup; a store is made as soon as one is needed."""
    notes = om.folder / "notes"
    notes.mkdir()
    (om.folder / "empty").mkdir()
    for more in ([], ["--no-places"], ["--place", "empty"], ["--notes", "notes"], ["--session", "a-session-to-come"]):
        assert om("consolidate", *more).stderr.endswith("consolidated: nothing to do\n")
    assert om("consolidate", "--notes", "nowhere", code=66).stderr.endswith("consolidated: 1 failure\n")
    assert not om.has_store
    assert not om.db.parent.exists()
    (notes / "2026-03-01.md").write_text("- We decided to keep the tide table in git.\n", "utf-8")
    om("consolidate", "--notes", "notes", *NOW)
    assert om.has_store


def test_a_file_is_told_from_a_changed_one_by_its_size_and_its_time(om: Om) -> None:
    """Unchanged files cost a look: one whose bytes changed behind the same size, time and place is not read."""
    place = om.folder / "place"
    place.mkdir()
    transcript = place / "a.jsonl"
    transcript.write_text(tide_story().text(), encoding="utf-8")
    grown_old(transcript)
    looked = ("consolidate", "--json", "--place", place, *NOW)
    assert len(om(*looked).document["files"]) == 1
    times = transcript.stat()
    with transcript.open("r+b") as stream:
        stream.write(b" ")
    os.utime(transcript, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert om(*looked).document["unchanged_files"] == 1, "it was read, though nothing told that it changed"
    os.utime(transcript)
    assert len(om(*looked).document["files"]) == 1


def test_one_bad_file_costs_that_file(om: Om) -> None:
    """F66: of ten files one is garbage; nine are observed, one is reported; --strict makes it an error."""
    place = om.folder / "place"
    (place / "deep").mkdir(parents=True)
    for number in range(9):
        talk = short_talk(session=f"5d0c6e0a-0000-4000-8000-00000000001{number}")
        (place / "deep" / f"{number}.jsonl").write_text(talk.text(), encoding="utf-8")
    (place / "0-garbage.jsonl").write_bytes(random.Random(66).randbytes(3_000))
    (place / "settings.toml").write_text("[a]\nb = 1\n", encoding="utf-8")
    run = om("consolidate", "--json", "--place", place, *NOW)
    assert [each["slug"] for each in run.document["failures"]] == ["unknown-format"]
    assert "0-garbage.jsonl" in run.stderr
    assert len(run.document["sessions"]) == 9
    assert pending(om) == 0
    assert om("consolidate", "--strict", "--place", place, *NOW, code=65).stderr.count("garbage") == 1
    assert om("consolidate", "-q", "--place", place, *NOW).stderr == "", "cron mails nothing for it"


def test_a_file_that_may_not_be_read_costs_that_file(om: Om) -> None:
    """F66: neither a folder without permission nor a place that is gone keeps the others from being taken in."""
    transcript = om.write("place.jsonl", tide_story().text())
    config = om.write("config.toml", f'[consolidate]\nplaces = ["gone", "{transcript}"]\nbackups = 0\n')
    run = om("consolidate", "--config", config, *NOW)
    assert "gone: no such file or folder" in run.stderr
    assert "consolidated: 1 file, 8 messages" in run.stderr
    missing = om("consolidate", "--place", om.folder / "gone", code=66)
    assert "gone" in missing.stderr


def test_what_is_no_file_is_not_waited_for(om: Om) -> None:
    """A pipe that is called like a transcript has no writer, perhaps for ever; a link may lead nowhere."""
    place = om.folder / "place"
    place.mkdir()
    os.mkfifo(place / "a.jsonl")
    (place / "b.jsonl").symlink_to(place / "nowhere")
    (place / "c.jsonl").mkdir()
    (place / "d.jsonl").write_text(tide_story().text(), encoding="utf-8")
    (place / "e.jsonl").symlink_to(place / "d.jsonl")
    run = om("consolidate", "--place", place, *NOW)
    assert "consolidated: 1 file, 8 messages" in run.stderr


def test_no_places_takes_nothing_in(om: Om) -> None:
    """`--no-places` observes what waits, and reads no file."""
    agents_home(om)
    om("observe", "--later", om.write("t.jsonl", tide_story().text()))
    done = om("consolidate", "--no-places", "--json", *NOW).document
    assert (done["files"], done["unchanged_files"], len(done["sessions"])) == ([], 0, 1)
    om("consolidate", "--no-places", "--place", om.folder, code=2)
    assert "places = []" not in om("config").stdout


def test_a_project_may_not_say_where_transcripts_and_notes_lie(om: Om) -> None:
    """S3.2: paths are the user's to say."""
    om.write(".om.toml", '[consolidate]\nplaces = ["secret"]\nnotes = "notes"\nbackups = 0\n')
    run = om("consolidate", *NOW)
    assert run.stderr.count("a project file may not set `consolidate.") == 3


# What is observed, and reflected on


def test_a_session_of_three_messages_is_observed(om: Om) -> None:
    """F9: however little is said in it."""
    om("observe", "--later", om.write("t.jsonl", short_talk().text()))
    om("consolidate", *NOW)
    assert pending(om) == 0
    assert any("drop station 41" in row["text"] for row in rows(om))


def test_a_session_that_is_going_on_is_left_for_the_next_run_but_not_when_it_is_named(om: Om) -> None:
    """D12: idle sessions, or the one that has ended; a clock that was ahead keeps no session waiting for years."""
    now = ("--now", "2026-02-10T09:10:00Z")
    om("observe", "--later", om.write("t.jsonl", tide_story().text()))
    done = om("consolidate", "--json", *now).document
    assert done["going_on"] == [tide_story().session]
    assert done["sessions"] == []
    assert "1 session still going on" in om("consolidate", *now).stderr
    assert len(om("consolidate", "--session", tide_story().session, "--json", *now).document["sessions"]) == 1
    ahead = short_talk(session="ahead")
    om("observe", "--later", om.write("ahead.jsonl", ahead.text()))
    assert len(om("consolidate", "--json", "--now", "2026-01-01T00:00:00Z").document["sessions"]) == 1


def test_a_long_story_fed_in_pieces_ends_with_three_tiers(om: Om) -> None:
    """T73, S0.8, S0.31, S0.38: 120 messages, a new process for each piece; then the session is consolidated."""
    talk = Talk()
    for number in range(60):
        talk.user(f"We decided to name gauge {number} `gauge_{number}` in tides_{number}.py, never anything else.")
        talk.assistant(f"Done: tides_{number}.py has `gauge_{number}` now, and all {number + 3} tests pass.")
    other = short_talk(session="other", begin=talk.begin)
    om("observe", om.write("other.jsonl", other.text()))
    transcript = om.write("t.jsonl", "")
    for piece in range(0, 120, 24):
        with transcript.open("a", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in talk.lines[piece : piece + 24])
        om("observe", transcript)
    done = om("consolidate", "--session", talk.session, "--json", *NOW).document
    (reflected,) = done["sessions"]
    assert reflected["session"] == talk.session
    assert reflected["reflection"]["outcome"] == "done"
    assert reflected["reflection"]["items_created"] > 0
    assert not done.get("backup"), "the end of a session has no time for that"
    om("consolidate", "--session", "other", *NOW)
    pack = om("context", "--session", talk.session, "--json", *NOW).document
    assert pack["cross"]
    assert pack["observations"]
    assert pack["messages"]
    assert 0 < pack["tokens"]["total"] <= pack["budget"]
    items = {row["text"] for row in om("items", "--jsonl").lines}
    assert any("gauge_" in text for text in items)
    assert om("consolidate", "--session", talk.session, "--json", *NOW).document["sessions"] == []


def test_only_the_session_that_is_named_is_looked_after(om: Om) -> None:
    """D12: with --session nothing is taken in from anywhere, and no other session is touched."""
    agents_home(om)
    for name in ("one", "two"):
        om("observe", "--later", om.write(f"{name}.jsonl", short_talk(session=name).text()))
    om("consolidate", "--session", "one", *NOW)
    waiting = {each["id"]: each["pending"] for each in om("sessions", "--json").document["sessions"]}
    assert waiting == {"one": 0, "two": 3}
    assert "unknown session `nobody`" in om("consolidate", "--session", "nobody", *NOW, code=66).stderr
    assert "nothing to do" in om("consolidate", "--session", "a-session-to-come", *NOW).stderr


# What fails


def test_a_model_that_is_down_keeps_nothing_else_from_being_done(om: Om) -> None:
    """S2.38, F97: messages are taken in, the store is backed up, the exit code is the model's; the next run does it."""
    agents_home(om)
    down = script(om)
    run = om("consolidate", "--model", down.model, "--json", *NOW, code=69)
    done = run.document
    assert len(done["files"]) == 3
    assert om.url or Path(done["backup"]).exists()
    assert {each["part"] for each in done["failures"]} == {"sessions"}
    assert len(down.asked) == 1, "a model that is down is not asked for each session"
    assert om("status", "--json").document["errors"]
    assert om("consolidate", "--model", down.model, "--best-effort", *NOW).stderr.count("warning") >= 1
    om("consolidate", *NOW)
    assert pending(om) == 0


def test_a_model_that_cannot_be_had_is_said_once(om: Om) -> None:
    """F97: without a key rows wait, and the rest is done; three parts miss it, one line says so."""
    agents_home(om)
    run = om("consolidate", "--observer", "anthropic", *NOW, code=77)
    assert run.stderr.count("om: error") == 1
    assert "3 files" in run.stderr
    assert om.url or "backup" in run.stderr
    assert pending(om) > 0


def test_a_key_that_the_reflector_lacks_keeps_nothing_from_being_observed(om: Om) -> None:
    """F75, F97: nor that of the observer what is due from being reflected on."""
    agents_home(om)
    run = om("consolidate", *NOW, env={"OM_REFLECTOR_PROVIDER": "anthropic"}, code=77)
    assert run.stderr.count("om: error") == 1
    assert pending(om) == 0
    assert {row["kind"] for row in rows(om)} == {"observation"}
    session = sessions(om)["codex"]["id"]
    env = {"OM_REFLECTOR_PROVIDER": "rules"}
    run = om("consolidate", "--session", session, "--observer", "anthropic", "--json", *NOW, env=env, code=77)
    assert run.document["sessions"][0]["reflection"]["outcome"] == "done"


@pytest.mark.file_store("its copies")
def test_a_disk_that_refuses_says_more_than_a_model_that_is_down(om: Om) -> None:
    """The exit code is that of the most decisive failure, whichever came first."""
    om("observe", "--later", om.write("t.jsonl", tide_story().text()))
    with connected(om.place) as connection:  # a row that leads nowhere: no copy of this store is sound
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("INSERT INTO leases (session, lane, owner, expires_at) VALUES (4711, 'x', 'y', 'z')")
    run = om("consolidate", "--model", script(om).model, "--json", *NOW, code=74)
    assert [each["part"] for each in run.document["failures"]] == ["sessions", "backup"]
    assert not list(om.db.parent.glob("*.bak*")), "no copy that did not pass is kept"


def test_nothing_is_done_where_om_is_disabled(om: Om) -> None:
    """D14: no store is made."""
    agents_home(om)
    run = om("consolidate", env={"OM_DISABLED": "1"})
    assert "disabled" in run.stderr
    assert not om.has_store


def test_rules_alone_reflect_across_sessions(om: Om) -> None:
    """S0.7: what is older than a few days is folded over all sessions; not again in vain."""
    agents_home(om)
    assert om("consolidate", "--json", *NOW).document["global"]["outcome"] in ("done", "empty")
    assert "outcome" not in om("consolidate", "--json", *NOW).document["global"]


def test_retention_is_applied_and_can_be_taken_back(om: Om) -> None:
    """S0.43, T55: what the settings say is kept, after all else; of one session where that is named."""
    for name in ("one", "two"):
        om("observe", "--later", om.write(f"{name}.jsonl", tide_story(session=name).text()))
    config = om.write("config.toml", "[retention]\nolder_than = 10\n")
    one = om("consolidate", "--session", "one", "--config", config, "--json", *NOW).document
    assert {row["session"] for row in one["retention"]["rows"]} == {"one"}
    foreseen = om("consolidate", "--no-places", "--dry-run", "--json", "--config", config, *NOW).document
    run = om("consolidate", "--no-places", "--config", config, *NOW)
    assert re.search(r"\d+ rows? pruned" + ("" if om.url else ", backup"), run.stderr)
    assert foreseen["prune"] == []
    in_sight = om("log", "--jsonl").lines
    assert all(row["kind"] == "item" or "metric" in row["text"] for row in in_sight), "rules stay, and what lasts"
    om("undo")
    assert len(om("log", "--jsonl").lines) > len(in_sight)


# What would be done


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(om: Om) -> None:
    """Before the first run and after it; the store's bytes, and what lies beside it, are as they were."""
    agents_home(om)
    told = om("consolidate", "--dry-run", *NOW).stdout
    assert told.count("take in  ") == 3
    assert not om.has_store
    assert not om.db.parent.exists()
    transcript = om.write("t.jsonl", tide_story().text())
    om("observe", "--later", transcript)
    before = stored(om.place)
    foreseen = om("consolidate", "--dry-run", "--json", *NOW).document
    assert foreseen["dry_run"] is True
    assert (len(foreseen["files"]), foreseen["backup"]) == (4, om.url is None)
    assert foreseen["sessions"] == [{"session": tide_story().session, "pending": 8, "reflect": False}]
    assert stored(om.place) == before
    grown_old(transcript, *om.home.rglob("*.jsonl"))
    om("consolidate", *NOW)
    assert om("consolidate", "--dry-run", *NOW).stderr == "om: nothing to do\n"


# Several at once


def test_of_eight_at_once_one_does_it_and_the_others_end_quietly_with_75(om: Om) -> None:
    """T43, F97: every message is kept and observed once; nobody waits for the one that is at it."""
    agents_home(om)
    om.open().close()
    processes = [om.start("consolidate", "-q", "--wait", "60", *NOW) for _ in range(8)]
    ended = [(*process.communicate(), process.returncode) for process in processes]
    assert all(out == b"" and err == b"" for out, err, _ in ended)
    codes = [code for _, _, code in ended]
    assert set(codes) <= {0, 75}
    assert 0 in codes
    assert_covered_once(om.place)
    assert len(sessions(om)) == 3
    assert pending(om) == 0
    assert len(list(om.db.parent.glob("*.bak"))) == (om.url is None), "a server has its own copies"


def test_the_second_one_says_who_is_at_it_and_a_session_that_ends_is_not_kept_waiting(om: Om) -> None:
    """The lease is of the whole run; the end of a session has its own."""
    om("observe", "--later", om.write("t.jsonl", tide_story().text()))
    slow = always(om, {**UNTIL, "text": answer()})
    first = om.start("consolidate", "--model", slow.model, "--no-places", *NOW)
    while first.poll() is None and not slow.asked:
        time.sleep(0.02)
    second = om("consolidate", *NOW, code=75)
    assert second.stderr == "om: another `om consolidate` is running; nothing was done\n"
    om("consolidate", "--session", "another-session-1", *NOW)
    first.send_signal(signal.SIGTERM)
    first.communicate()
    assert number_of(om.place, "leases") == 0


def test_the_lease_of_a_run_that_was_killed_is_taken_over_at_once(om: Om) -> None:
    """F50: by the next run, without waiting for it to end."""
    om("observe", "--later", om.write("t.jsonl", tide_story().text()))
    slow = always(om, {**UNTIL, "text": answer()})
    first = om.start("consolidate", "--model", slow.model, "--no-places", *NOW)
    while first.poll() is None and not slow.asked:
        time.sleep(0.02)
    first.kill()
    first.communicate()
    assert number_of(om.place, "leases") == 2
    om("consolidate", *NOW)
    assert pending(om) == 0
    assert number_of(om.place, "leases") == 0


def test_one_that_another_host_holds_is_waited_for_until_it_ends(om: Om) -> None:
    """A lease of somebody whose end cannot be seen holds until it runs out."""
    om("observe", om.write("t.jsonl", tide_story().text()))
    with closing(om.open(wait=5)) as store:
        now, later = "2026-04-02T04:00:00.000Z", "2026-04-02T04:05:00.000Z"
        store.leases.claim("", Lane.CONSOLIDATE, owner="elsewhere:1:1", now=now, expires_at=later)
    om("consolidate", *NOW, code=75)
    om("consolidate", "--now", "2026-04-02T04:06:00Z")


# Killed


@pytest.fixture(scope="module")
def undisturbed(new_om: Callable[[], Om]) -> tuple[float, Contents]:
    """How long a run takes that nobody disturbs, and what it leaves."""
    om = new_om()
    places(om)
    command = ("consolidate", "-q", "--place", om.folder / "place", *NOW)
    om(*command, "--db", om.folder / "first.db")
    begun = time.monotonic()
    om.process(*command)
    return time.monotonic() - begun, told(om)


def places(om: Om) -> None:
    """A folder with two transcripts, one of them long."""
    place = om.folder / "place"
    place.mkdir()
    (place / "a.jsonl").write_text(long_talk("a", 600, lines=20).text(), encoding="utf-8")
    (place / "b.jsonl").write_text(tide_story().text(), encoding="utf-8")


def told(om: Om) -> Contents:
    """What the store holds, but for where its files lay, and how often something was tried."""
    found = contents(om.place)
    found.pop("bookmarks")
    found["operations"] = [operation[:6] for operation in found["operations"]]  # without digests of ids
    return found


@pytest.mark.parametrize("part", first_only([3, 0, 1, 2, 4, 5]))
def test_a_run_killed_anywhere_and_repeated_leaves_what_an_undisturbed_one_does(
    part: int, undisturbed: tuple[float, Contents], new_om: Callable[[], Om]
) -> None:
    """T45: whenever it is killed, the next run comes to the same, with one backup."""
    seconds, left = undisturbed
    om = new_om()
    places(om)
    command = ("consolidate", "-q", "--place", om.folder / "place", *NOW)
    process = om.start(*command)
    time.sleep(seconds * (part + 1) / 7)
    process.kill()
    process.communicate()
    om(*command)
    assert told(om) == left
    copies = len(list(om.db.parent.glob("*.bak")))
    assert om.url or 1 <= copies <= 2, "a second one where rows were to be folded across sessions again"
    assert json.loads(om("status", "--json").stdout)["pending"] == 0


def test_a_key_that_is_missing_is_one_failure_whatever_it_keeps_from_being_done(om: Om) -> None:
    om("observe", "--later", stdin=tide_story().text())
    run = om("consolidate", "--observer", "anthropic", "--model", "m", *NOW, code=77)
    assert run.stderr.count("error:") == 1
    assert run.stderr.endswith(" 1 failure\n")


def test_what_would_be_pruned_is_told_as_what_was(om: Om) -> None:
    """A dry run names nothing that there is none of."""
    om("observe", "--session", "s", stdin=tide_story().text())
    env = {"OM_RETENTION_KEEP_LAST": "1"}
    foreseen = om("consolidate", "--no-places", "--dry-run", *NOW, env=env).stdout
    [told] = re.findall(r"^prune    (\d+ rows)$", foreseen, re.MULTILINE)
    plan = om("consolidate", "--no-places", "--dry-run", "--json", *NOW, env=env).document
    assert (f"{len(plan['prune'])} rows", plan["prune_messages"], plan["dry_run"]) == (told, {}, True)
