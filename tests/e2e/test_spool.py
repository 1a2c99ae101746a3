"""The spool: what a locked store or a full disk keeps from being stored waits in files beside the store."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.conftest import Om
from tests.e2e.background import wait_until
from tests.e2e.contents import assert_covered_once, beside, contents, held, opened, rows
from tests.e2e.killing import Killing
from tests.e2e.test_damage import damage, kept, texts
from tests.e2e.test_disks import mounting, run_in
from tests.e2e.transcripts import Talk, long_talk, tide_story
from tests.soak import more_in_soak

NOW = "2026-02-10T12:00:00Z"
SECRET = "ghp_" + "a1B2" * 9
AT_ONCE = {"OM_WAIT": "0.1"}


@contextmanager
def locked(om: Om) -> Iterator[None]:
    """Another process writes to the store inside the block, and takes its time."""
    om.db.parent.mkdir(exist_ok=True)
    with held(om.place):
        yield


def folder(om: Om) -> Path:
    return om.spool


def waiting(om: Om) -> list[Path]:
    return sorted(folder(om).iterdir()) if folder(om).exists() else []


def messages(om: Om) -> list[tuple[str, str]]:
    """Session and text of each message, in order of arrival."""
    query = "SELECT s.id, m.text FROM messages AS m JOIN sessions AS s ON s.number = m.session ORDER BY m.seq"
    return rows(om.place, query)


def chat(*said: str) -> str:
    """A conversation that names no session."""
    turns = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(said)]
    return json.dumps({"messages": turns})


def spooled(om: Om, *inputs: str) -> list[Path]:
    """Has each input wait in a file of its own."""
    with locked(om):
        for text in inputs:
            report = om("observe", "--json", stdin=text, env=AT_ONCE).document["files"][0]
            assert report["spooled"] == report["messages"] > 0
    assert len(waiting(om)) == len(inputs)
    return waiting(om)


class TestALockedStore:
    def test_a_pipe_outlives_it(self, om: Om) -> None:
        """S2.39, T67: the next command that writes stores the messages, and the same pipe adds nothing."""
        story = tide_story().text()
        om("note", "first")
        with locked(om):
            run = om("observe", stdin=story, env=AT_ONCE)
        assert run.stdout == ""
        assert "8 messages (0 new), 0 observations, 8 messages spooled" in run.stderr
        assert "om: warning: -: another process is writing" in run.stderr
        assert "kept in the spool" in run.stderr
        assert om("note", "second").stderr == "om: stored what was in the spool: 8 messages\n"
        assert beside(om.place) == []
        assert len(messages(om)) == 8
        report = om("observe", "--json", stdin=story).document["files"][0]
        assert (report["new_messages"], report["known_messages"], report["pending"]) == (0, 8, 0)
        assert report["observations"] > 1
        assert "spooled" not in report
        assert_covered_once(om.place)

    def test_what_waits_is_stored_as_if_there_had_been_no_lock(self, om: Om, new_om: Callable[[], Om]) -> None:
        """S2.39: to the byte: identities, times and order, and nothing of the text counts twice."""
        story, other = long_talk("a", 600).text(), new_om()
        for each in (om, other):
            each("note", "first", "--now", NOW, cwd=om.folder)
        with locked(om):
            om("observe", "-", "--now", NOW, stdin=story, env=AT_ONCE)
        for each in (om, other):
            each("observe", "-", "--now", NOW, stdin=story)
        assert contents(om.place) == contents(other.place)

    def test_a_note_outlives_it(self, om: Om) -> None:
        """S2.39, T67: it is printed with the id that it will have."""
        om("note", "first")
        with locked(om):
            said = om("note", "-", "--json", stdin=f"the token is {SECRET}", env=AT_ONCE).document
            plain = om("note", "--item", "ships on Friday", "--tag", "release", env=AT_ONCE)
        assert said["spooled"] is True
        assert "kept in the spool" in plain.stderr
        assert om("note", "last").stderr == "om: stored what was in the spool: 2 notes\n"
        rows = om("log", "--json").document["observations"]
        assert [row["text"] for row in rows] == [
            "first",
            "the token is [redacted:github-token]",
            "ships on Friday",
            "last",
        ]
        assert rows[1]["id"] == said["observation"]["id"]
        assert (rows[2]["kind"], rows[2]["tags"]) == ("item", ["release"])

    def test_a_store_that_another_process_is_making_gets_the_messages_later(self, om: Om) -> None:
        spooled(om, tide_story().text())
        om("tick")
        assert len(messages(om)) == 8

    def test_what_other_messages_and_lines_say_is_told_as_usual(self, om: Om) -> None:
        om("note", "first")
        bad = f"{tide_story().text()}not json\n"
        with locked(om):
            run = om("observe", stdin=bad, env=AT_ONCE)
            later = om("observe", "--later", "--json", stdin=chat("one", "two"), env=AT_ONCE)
            behind = om("observe", "--background", "--json", stdin=chat("three", "four"), env=AT_ONCE)
        assert "1 line skipped" in run.stderr
        assert later.document["files"][0]["spooled"] == 2
        assert behind.document["background"]["started"] is False
        om("note", "second")
        assert len(messages(om)) == 12

    def test_a_file_is_not_spooled_because_it_stays(self, om: Om) -> None:
        """T67: the next run of the same command reads it."""
        path = om.write("t.jsonl", tide_story().text())
        om("note", "first")
        with locked(om):
            om("observe", path, env=AT_ONCE, code=75)
        assert not folder(om).exists()

    def test_the_transcript_of_a_hook_is_read_by_the_next_command(self, om: Om) -> None:
        """F27, T67: the hook may have been the session's last one. The spool has only the name of the file."""
        om("note", "first")
        path, gone = om.write("t.jsonl", tide_story().text()), om.write("gone.jsonl", tide_story().text())
        with locked(om):
            for each in (path, gone, path):
                left = {"event": "SessionEnd", "session": "s", "transcript": str(each), "folder": str(om.folder)}
                om("hook", "claude-code", "--worker", json.dumps(left), env=AT_ONCE)
        assert [json.loads(file.read_text()) for file in waiting(om)] == [
            {"transcript": str(each)} for each in (path, gone, path)
        ]
        gone.unlink()
        told = om("note", "second").stderr
        assert told == f"om: {gone}: no such file\nom: stored what was in the spool: 8 messages\n"
        assert not folder(om).exists()
        assert len(messages(om)) == 8
        assert om("observe", path, "--json").document["files"][0]["new_messages"] == 0
        assert_covered_once(om.place)

    def test_a_hook_whose_worker_finds_the_store_locked_loses_nothing(self, om: Om) -> None:
        """F27: as a client calls it."""
        om("note", "first")
        path = om.write("t.jsonl", tide_story().text())
        call = {"hook_event_name": "SessionEnd", "session_id": "s", "transcript_path": str(path)}
        with locked(om):
            om("hook", "claude-code", stdin=json.dumps(call), env=AT_ONCE)
            wait_until(lambda: [file.suffix for file in waiting(om)] == [".jsonl"])
        om("tick")
        assert len(messages(om)) == 8
        assert_covered_once(om.place)

    def test_the_end_of_a_long_pipe_waits_behind_its_beginning(self, om: Om) -> None:
        """T67: the lock comes while the pipe is read; the order of the messages stays."""
        story = long_talk("a", 1400, lines=400)  # a megabyte of a pipe is read before the first message
        om("note", "first")
        process = om.start("observe", "-", env=AT_ONCE)
        assert process.stdin is not None
        process.stdin.write("".join(f"{line}\n" for line in story.lines[:700]).encode())
        process.stdin.flush()
        wait_until(lambda: len(messages(om)) >= 500)
        with locked(om):
            _, told = process.communicate("".join(f"{line}\n" for line in story.lines[700:]).encode())
        assert process.returncode == 0, told
        assert b"1400 messages (500 new), 0 observations, 900 messages spooled" in told
        report = om("observe", "--json", stdin=story.text()).document["files"][0]
        assert (report["new_messages"], report["known_messages"]) == (0, 1400)
        with opened(om.place) as connection:
            times = [at for (at,) in connection.execute("SELECT at FROM messages ORDER BY seq")]
        assert times == sorted(times)
        assert_covered_once(om.place)


class TestExactlyOnce:
    def test_a_file_that_a_killed_process_has_stored_adds_nothing(self, om: Om) -> None:
        """S2.39: killed between storing the last message and deleting the file; a note has an id for this."""
        om("note", "first")
        files = spooled(om, long_talk("a", 600).text(), chat("one", "two"))
        with locked(om):
            om("note", "waits", env=AT_ONCE)
        copies = [path.read_bytes() for path in waiting(om)]
        names = [path.name for path in waiting(om)]
        om("note", "second")
        before = contents(om.place)
        folder(om).mkdir()
        for name, content in zip(names, copies, strict=True):
            (folder(om) / name).write_bytes(content)
        assert "stored what" not in om("observe", "--json", stdin=chat("one", "two")).stderr
        assert not folder(om).exists()
        assert len(files) == 2
        assert {name: rows for name, rows in contents(om.place).items() if name in ("messages", "identities")} == {
            name: before[name] for name in ("messages", "identities")
        }
        assert texts(om).count("waits") == 1

    @pytest.mark.parametrize("kills", [3, *more_in_soak(40)])
    def test_processes_that_are_killed_while_they_take_it_in(self, om: Om, kills: int, chance: Random) -> None:
        """S2.39, T67."""
        killing = Killing(chance=chance)
        stories = [long_talk(f"{number:08}", 600) for number in range(6)]
        om("note", "first")
        spooled(om, *(story.text() for story in stories))
        for number in range(kills):
            killing.killed(om, "note", f"note {number}")
        om("note", "last")
        assert not folder(om).exists()
        self._assert_stored_once(om, stories)

    @pytest.mark.parametrize("kills", more_in_soak(60))
    def test_processes_that_are_killed_while_others_take_the_same_in(self, om: Om, kills: int, chance: Random) -> None:
        """S2.39, T67: the same files are put back after each kill, as if nobody had come to delete them."""
        killing = Killing(chance=chance)
        stories = [long_talk(f"{number:08}", 600) for number in range(6)]
        om("note", "first")
        files = {file: file.read_bytes() for file in spooled(om, *(story.text() for story in stories))}
        with locked(om):
            om("note", "waits", env=AT_ONCE)
        stories.append(long_talk("hook", 600))
        left = folder(om) / f"{1:019}.jsonl"
        files[left] = json.dumps({"transcript": str(om.write("t.jsonl", stories[-1].text()))}).encode()
        for number in range(kills):
            folder(om).mkdir(exist_ok=True)
            for file in chance.sample(sorted(files), 3):
                file.write_bytes(files[file])
            beside = om.start("note", f"beside {number}")
            killing.killed(om, "note", f"note {number}")
            _, told = beside.communicate()
            assert beside.returncode == 0, told
        om("note", "last")
        assert not folder(om).exists()
        self._assert_stored_once(om, stories)
        assert texts(om).count("waits") == 1
        assert [text for text in texts(om) if text.startswith("beside")] == [f"beside {n}" for n in range(kills)]

    def _assert_stored_once(self, om: Om, stories: list[Talk]) -> None:
        """All messages are stored, each session's in order."""
        with opened(om.place) as connection:
            stored = connection.execute("SELECT count(*), count(DISTINCT session) FROM messages").fetchone()
            assert stored == (600 * len(stories), len(stories))
            assert connection.execute("SELECT count(*) FROM identities").fetchone() == stored[:1]
            orders = [connection.execute(f"SELECT text FROM messages ORDER BY session, {by}") for by in ("seq", "at")]
            assert orders[0].fetchall() == orders[1].fetchall()

    def test_several_processes_at_once_store_it_once(self, om: Om) -> None:
        """S2.39, T67: each waits for the others, and none fails or reports a message twice."""
        om("note", "first")
        spooled(om, *(long_talk(f"{number:08}", 80).text() for number in range(8)))
        with locked(om):
            om("note", "waits", env=AT_ONCE)
        processes = [om.start("note", f"note {number}") for number in range(5)]
        told = [process.communicate()[1].decode() for process in processes]
        assert [process.returncode for process in processes] == [0] * 5, told
        counts = re.findall(r"(\d+) (message|note)", " ".join(told))
        assert sum(int(number) for number, noun in counts if noun == "message") == 640
        assert sum(int(number) for number, noun in counts if noun == "note") == 1
        assert not folder(om).exists()
        assert len(messages(om)) == 640
        assert sorted(texts(om)) == ["first", *(f"note {number}" for number in range(5)), "waits"]

    def test_what_a_killed_process_was_writing_is_stored_as_far_as_it_was_written(self, om: Om) -> None:
        """T67: as what a killed run has stored stays stored. Nobody touches the file while the process runs."""
        story = long_talk("a", 1400, lines=400)  # a megabyte of a pipe is read before the first message
        om("note", "first")
        with locked(om):
            process = om.start("observe", "-", env=AT_ONCE)
            assert process.stdin is not None
            process.stdin.write("".join(f"{line}\n" for line in story.lines[:1200]).encode())
            process.stdin.flush()
            wait_until(lambda: bool(waiting(om)) and waiting(om)[0].read_bytes().count(b"\n") == 2)
        om("note", "second")
        assert messages(om) == []
        process.kill()
        process.communicate()
        (file,) = waiting(om)
        assert file.suffix == ".partial"
        with file.open("ab") as stream:
            stream.write(b'{"session":')
        om("note", "third")
        assert not folder(om).exists()
        assert len(messages(om)) == 1000
        assert om("observe", "--json", stdin=story.text()).document["files"][0]["new_messages"] == 400

    def test_what_a_process_of_another_host_was_writing_is_stored_after_a_day(self, om: Om) -> None:
        """T67: nobody here can see if it still runs."""
        om("note", "first")
        (file,) = spooled(om, tide_story().text())
        left = file.rename(file.with_name(f"{file.name[:19]}.elsewhere:1:1.partial"))
        om("note", "second")
        assert waiting(om) == [left]
        os.utime(left, (1, 1))
        om("note", "third")
        assert not folder(om).exists()
        assert len(messages(om)) == 8

    def test_two_conversations_that_begin_alike_stay_apart(self, om: Om) -> None:
        """S2.39: their session is derived from the first prompt, which each found free."""
        first, second = chat("Hello", "Hi", "Use PNG.", "Yes."), chat("Hello", f"Hello, {SECRET}", "Use SVG.", "No.")
        for _ in range(2):
            spooled(om, first, second)
            om("note", "-", stdin="x")
            assert len({session for session, _ in messages(om)}) == 2
            assert len(messages(om)) == 8
        assert om("observe", "--json", stdin=first).document["files"][0]["new_messages"] == 0
        assert (
            om("observe", "--json", stdin=chat("Hello", "Hi", "Use PNG.", "Yes.", "Thanks")).document["files"][0][
                "new_messages"
            ]
            == 1
        )


class TestFiles:
    def test_no_recognised_secret_is_in_them_and_nobody_else_may_read_them(self, om: Om) -> None:
        """S2.39: secrets stop at the door, and a stored message is recognised although its secret is gone."""
        story = Talk().user(f"The token is {SECRET}.").assistant(f"I see {SECRET}.").text()
        (file,) = spooled(om, story)
        assert SECRET.encode() not in file.read_bytes()
        assert b"[redacted:github-token]" in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert om("observe", "--json", stdin=story).document["files"][0]["new_messages"] == 0

    def test_one_that_cannot_be_read_is_kept_and_holds_up_nothing(self, om: Om) -> None:
        """S2.39: it is told once; its other lines are stored."""
        om("note", "first")
        first, second = spooled(om, long_talk("a", 600).text(), chat("one", "two"))
        lines = first.read_bytes().splitlines(keepends=True)
        odd = [b"\x00\xff\n", b"[]\n", b'"row"\n', b'{"row": {"id": 1}}\n', b'{"messages": [{}]}\n', b"7\n"]
        odd += [b"[" * 100_000 + b"\n", lines[1].replace(b'"id":"', b'"id":7,"_":"', 1), lines[2][:-100] + b"\n"]
        first.write_bytes(b"".join([*odd, lines[0].replace(b'"tokens":', b'"to_come":', 1), *lines[1:]]))
        run = om("note", "second")
        aside = first.with_suffix(".invalid")
        assert f"a file of the spool cannot be read and is kept as {aside}" in run.stderr
        assert waiting(om) == [aside]
        assert not second.exists()
        assert len(messages(om)) == 102
        assert om("note", "third").stderr == ""
        assert om("status", "--json").document["spool"]["invalid"] == 1
        assert "1 file that cannot be read" in om("doctor", code=None).stdout
        assert waiting(om) == [aside]

    def test_links_pipes_and_files_of_others_are_left_alone(self, om: Om) -> None:
        """S2.39: none of them is read, so a pipe blocks nobody and nobody else adds to the memory."""
        om("note", "first")
        (file,) = spooled(om, tide_story().text())
        link, pipe, place = (folder(om) / f"{number:019}.jsonl" for number in range(3))
        link.symlink_to(file.rename(om.folder / "elsewhere.jsonl"))
        os.mkfifo(pipe)
        place.mkdir()
        left = [link, pipe, place]
        if os.geteuid() == 0:
            left.append(folder(om) / f"{3:019}.jsonl")
            shutil.copy(link, left[-1])
            os.chown(left[-1], 4711, -1)
        assert om("note", "second").stderr == ""
        assert waiting(om) == left
        assert messages(om) == []
        assert "spool" not in om("status", "--json").document

    @pytest.mark.parametrize("mode", [0o500, 0o000])
    def test_a_folder_without_permission_gives_what_can_be_read_once(self, om: Om, mode: int) -> None:
        """S2.39: and the error is that of the store if it takes nothing."""
        om("note", "first")
        spooled(om, tide_story().text())
        with locked(om):
            om("note", "waits", env=AT_ONCE)
        folder(om).chmod(mode)
        try:
            with locked(om):
                failed = run_in(om, "{om} note none --wait 0.1", heeds=True)
            runs = [run_in(om, f"{{om}} note 'next {number}'", heeds=True) for number in range(3)]
            looked = run_in(om, "{om} status; {om} doctor", heeds=True)
        finally:
            folder(om).chmod(0o700)
        assert (failed.returncode, "kept" in failed.stderr) == (75, False)
        assert [run.returncode for run in runs] == [0, 0, 0]
        stored = ["om: stored what was in the spool: 8 messages and 1 note\n", "", ""]
        assert [run.stderr for run in runs] == (stored if mode else [""] * 3)
        assert "Traceback" not in looked.stderr
        om("note", "last")
        assert not folder(om).exists()
        assert len(messages(om)) == 8
        assert sorted(texts(om)) == ["first", "last", "next 0", "next 1", "next 2", "waits"]

    def test_they_have_a_largest_size_together(self, om: Om) -> None:
        """S2.39: beyond it the error is that of the store, and nothing is kept."""
        om("note", "first")
        folder(om).mkdir(parents=True)
        other = folder(om) / f"{1:019}.invalid"
        with other.open("wb") as stream:
            stream.truncate(256_000_000)
        with locked(om):
            for command in (["observe", "-"], ["note", "-"]):
                run = om(*command, stdin=tide_story().text(), env=AT_ONCE, code=75)
                assert "may not exceed 256 MB" in run.stderr
                assert "kept" not in run.stderr
        assert waiting(om) == [other]

    def test_status_and_doctor_show_what_waits(self, om: Om) -> None:
        """S2.39: its size and age; `om doctor --fix` stores it."""
        om("note", "first")
        assert "for the next command" not in om("status").stdout + om("doctor", code=None).stdout
        assert "spool" not in om("status", "--json").document
        (file,) = spooled(om, tide_story().text())
        size = file.stat().st_size
        found = om("status", "--json").document["spool"]
        assert (found["folder"], found["files"], found["size"], found["invalid"]) == (str(folder(om)), 1, size, 0)
        shown = f"1 input since {found['since'][:10]} {found['since'][11:16]}, for the next command that writes"
        assert f"{shown} ({size / 1000:.0f} kB)" in om("status").stdout
        assert shown in om("doctor", code=None).stdout
        assert len(waiting(om)) == 1, "they only look"
        om("doctor", "--fix", code=None)
        assert not folder(om).exists()
        assert len(messages(om)) == 8

    @pytest.mark.file_store("its path")
    def test_they_are_found_through_a_link_to_the_store(self, om: Om) -> None:
        om("note", "first")
        link = om.folder / "link.db"
        link.symlink_to(om.db)
        with locked(om):
            om("note", "second", "--db", link, env=AT_ONCE)
        assert len(waiting(om)) == 1
        om("note", "third", "--db", link)
        assert texts(om) == ["first", "second", "third"]


@pytest.mark.file_store("disks and damage")
class TestDisksAndDamage:
    def test_a_store_that_may_not_grow_gets_the_messages_later(self, om: Om) -> None:
        """S2.39, F32: a quota that the log of the store reaches, and a file of the spool does not."""
        story = om.write("t.jsonl", long_talk("a", 40, lines=40).text())
        om("note", "first")
        run = run_in(om, f"ulimit -f 60; exec {{om}} observe - < {story}")
        assert run.returncode == 0, run.stderr
        assert "kept in the spool" in run.stderr
        assert len(waiting(om)) == 1
        om("note", "second")
        assert len(messages(om)) == 40
        assert om("observe", "--json", stdin=story.read_bytes()).document["files"][0]["new_messages"] == 0

    @pytest.mark.parametrize("kilobytes", [20, 60])
    def test_a_spool_that_cannot_be_written_either_pretends_nothing(self, om: Om, kilobytes: int) -> None:
        """S2.39, F32: the error is that of the store."""
        story = om.write("t.jsonl", long_talk("a", 400, lines=40).text())
        om("note", "first")
        run = run_in(om, f"ulimit -f {kilobytes}; exec {{om}} observe - < {story}")
        assert run.returncode == 74, run.stderr
        assert "kept in" not in run.stderr
        assert not folder(om).exists()

    def test_a_pipe_outlives_a_disk_that_is_nearly_full(self, om: Om, mount: str) -> None:
        """S2.39, F32: what the log of the store took in vain is room for the spool, which needs less."""
        story = om.write("t.jsonl", long_talk("a", 20, lines=10).text())
        run = run_in(
            om,
            mount + "{om} note first; left=$(df -k --output=avail {folder} | tail -1); "
            "head -c $(((left - 64) * 1024)) /dev/zero >{folder}/fill; "
            "{om} observe - < {story}; ls {db}.spool | wc -l; rm {folder}/fill; {om} note second; {om} sessions --json",
            apart=True,
            kilobytes=4000,
            db=om.db,
            folder=om.db.parent,
            story=story,
        )
        assert run.returncode == 0, run.stderr
        assert "20 messages spooled" in run.stderr
        _, files, _, sessions = run.stdout.splitlines()
        assert files == "1"
        assert [each["messages"] for each in json.loads(sessions)["sessions"]] == [20]

    def test_a_full_disk_takes_nothing_and_what_waits_waits_on(self, om: Om, mount: str) -> None:
        """S2.39, F32: a command that frees space is not held up by what waits."""
        story = om.write("t.jsonl", long_talk("a", 400, lines=40).text())
        with locked(om):
            om("observe", "-", stdin=tide_story().text(), env=AT_ONCE)
        shutil.copytree(folder(om), om.folder / "spool")
        run = run_in(
            om,
            mount + "{om} note first; {om} backup >/dev/null; cp -r {spool} {db}.spool; "
            "head -c 20m /dev/zero >{folder}/fill 2>/dev/null || true; "
            "{om} observe - < {story} >/dev/null 2>{folder}/../told || echo $?; ls {db}.spool | wc -l; "
            "rm {folder}/fill; {om} note second; {om} sessions --json",
            apart=True,
            kilobytes=2000,
            spool=om.folder / "spool",
            db=om.db,
            folder=om.db.parent,
            story=story,
        )
        assert run.returncode == 0, run.stderr
        _, code, files, _, sessions = run.stdout.splitlines()
        assert (code, files) == ("74", "1")
        assert [each["messages"] for each in json.loads(sessions)["sessions"]] == [8]

    def test_a_pipe_outlives_a_damaged_store(self, om: Om) -> None:
        """S2.39, S2.40, T68: its backup takes the place of the store, and the next command stores what waits."""
        om("note", "first")
        om("backup")
        om("observe", "-q", stdin=long_talk("b", 80).text())
        damage(om)
        run = om("observe", "-", stdin=tide_story().text(), code=74)
        assert "kept in the spool" in run.stderr
        assert "was damaged: it is kept as" in run.stderr
        assert len(kept(om)) == 1
        assert "8 messages" in om("note", "second").stderr
        assert len(messages(om)) == 8

    def test_a_store_that_was_restored_gets_what_waits_beside_it(self, om: Om) -> None:
        """S2.39, S2.40."""
        om("note", "first")
        backup = om("backup").stdout.strip()
        spooled(om, tide_story().text())
        om("restore", backup, "--yes")
        om("note", "second")
        assert len(messages(om)) == 8
        assert texts(om) == ["first", "second"]


@pytest.fixture(name="mount")
def small_disk(om: Om) -> str:
    return mounting(om)
