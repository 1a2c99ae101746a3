"""`om watch`: files are followed as they are written, by processes that are started, signalled and raced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import Om
from tests.e2e.contents import assert_covered_once, held, make_newer, number_of
from tests.e2e.scripts import UNTIL, always, pending, rows, script
from tests.e2e.transcripts import Talk, tide_story

DUE = {"OM_OBSERVE_TOKENS": "1"}
"""Whatever waits is due."""
QUICK = ("--interval", "0.1", "--at-most-every", "0.2")


@dataclass(slots=True)
class Watcher:
    """A running `om watch`."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def stdout(self) -> str:
        """What it has printed so far."""
        return (self.folder / "stdout").read_text("utf-8")

    @property
    def stderr(self) -> str:
        """What it has said so far."""
        return (self.folder / "stderr").read_text("utf-8")

    def waits_for(self, is_so: Callable[[], bool], seconds: float = 60) -> None:
        """Waits until something is so, while it runs."""
        until = time.monotonic() + seconds
        while not is_so():
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.stderr}"
            assert time.monotonic() < until, f"waited in vain: {self.stdout}\n{self.stderr}"
            time.sleep(0.05)

    def waits_until_it_follows(self) -> None:
        """Waits for the end of its first round."""
        self.waits_for(lambda: "om: following " in self.stderr)

    def looks_again(self, folder: Path) -> None:
        """Waits for two rounds more: what cannot be read is said in each, since there is something new of that."""
        for number in range(2):
            bad = folder / f"bad-{time.monotonic_ns()}-{number}.jsonl"
            bad.write_text("nothing that anybody said\n", "utf-8")
            self.waits_for(lambda: bad.name in self.stderr)  # noqa: B023

    def ends(self, number: signal.Signals = signal.SIGINT) -> int:
        """Signals it, and gives its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert "Traceback" not in self.stderr, self.stderr
        return code


@contextmanager
def watching(om: Om, *arguments: str | Path, env: dict[str, str] | None = None) -> Iterator[Watcher]:
    """Starts one, and ends it in any case."""
    folder = om.folder / f"watcher-{time.monotonic_ns()}"
    folder.mkdir()
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            om.command("watch", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=om.environment(env),
            cwd=om.folder,
        )
    try:
        yield Watcher(process=process, folder=folder)
    finally:
        process.kill()
        process.wait()


def append(path: Path, text: str) -> None:
    """Writes more to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def slowest_of(path: Path, pieces: Iterable[str]) -> float:
    """Writes a file piece by piece; the longest time for which it was left as it was, in seconds."""
    slowest, before = 0.0, time.monotonic()
    for piece in pieces:
        append(path, piece)
        slowest, before = max(slowest, time.monotonic() - before), time.monotonic()
        time.sleep(0.02)
    return slowest


def known(om: Om) -> int:
    """Messages in the store."""
    return number_of(om.place, "messages") if om.has_store else 0


def parts(om: Om) -> tuple[Path, Path]:
    """An empty folder of transcripts, and a file in a folder of it."""
    folder = om.folder / "transcripts"
    (folder / "below").mkdir(parents=True)
    return folder, folder / "below" / "tide.jsonl"


def more(session: str) -> str:
    """A line that may follow what there is of the tides."""
    return tide_story(session=session).user("And we decided to use port 9.").text().splitlines(keepends=True)[-1]


# Once


def test_one_look_takes_in_what_is_new_and_does_what_is_due(om: Om) -> None:
    """A folder, and what lies below it; the second look finds nothing new, and says nothing but that."""
    folder, file = parts(om)
    file.write_text(tide_story(session="a").text(), "utf-8")
    (folder / "b.jsonl").write_text(tide_story(session="b").text(), "utf-8")
    run = om("watch", "--once", folder, env=DUE)
    assert run.stdout.count("\n") == len(rows(om)) > 0
    assert run.stderr.splitlines()[-1] == "om: following 2 files"
    assert [line.split(":")[0] for line in run.stderr.splitlines()] == [
        str(folder / "b.jsonl"),
        "b",
        str(file),
        "a",
        "om",
    ]
    assert pending(om) == 0
    run = om("watch", "--once", folder, env=DUE)
    assert (run.stdout, run.stderr) == ("", "om: following 2 files\n")
    assert om("watch", "--once", "--quiet", folder).stderr == ""


def test_the_document_of_one_look(om: Om) -> None:
    folder, file = parts(om)
    file.write_text(tide_story(session="a").text(), "utf-8")
    run = om("watch", "--once", "--json", folder, env=DUE)
    assert run.document["followed"] == 1
    (report,) = run.document["files"]
    assert (report["path"], report["sessions"], report["new_messages"]) == (str(file), ["a"], 8)
    (session,) = run.document["sessions"]
    assert [row["id"] for row in session["observations"]] == [row["id"] for row in rows(om)]
    assert om("watch", "--once", "--json", folder).document == {"schema": 1, "followed": 1, "files": [], "sessions": []}


def test_what_is_not_due_waits(om: Om) -> None:
    """And is done when it is, though nothing has come since: what waits of a file is looked at with the first look."""
    folder, file = parts(om)
    file.write_text(tide_story(session="a").text(), "utf-8")
    assert om("watch", "--once", folder, env={"OM_OBSERVE_TRIGGER": "manual"}).stdout == ""
    assert pending(om) == 8
    assert om("watch", "--once", folder, env=DUE).stdout != ""
    assert pending(om) == 0


def test_files_of_folders_that_may_be_something_else_are_left_alone_without_a_word(om: Om) -> None:
    """Those a reader knows are taken in; hidden ones, other programs' and pipes are not looked into."""
    folder, file = parts(om)
    chat = "User: We decided to ship on Friday.\nAssistant: Noted, on Friday then.\nUser: Thanks.\n"
    (folder / "chat.txt").write_text(chat, "utf-8")
    (folder / "README.md").write_text("# Tides\n\nAbout tides.\n", "utf-8")
    (folder / "package.json").write_text('{"name": "tides"}', "utf-8")
    (folder / "tides.py").write_text(chat.replace("Friday", "Monday"), "utf-8")
    (folder / ".hidden.jsonl").write_text(tide_story(session="hidden").text(), "utf-8")
    (folder / ".git").mkdir()
    (folder / ".git" / "x.jsonl").write_text(tide_story(session="git").text(), "utf-8")
    os.mkfifo(folder / "pipe.jsonl")
    file.write_text("[1]\n", "utf-8")
    run = om("watch", "--once", folder)
    assert "text, 3 messages" in run.stderr
    assert "md" not in run.stderr
    assert "package.json" not in run.stderr
    assert str(file) in run.stderr
    assert known(om) == 3
    run = om("watch", "--once", folder, "--glob", "*.py", "--glob", "*.md", code=None)
    assert "tides.py" in run.stderr
    assert "README.md" in run.stderr
    assert run.stderr.endswith("om: following 2 files\n")
    assert "neither a file nor a folder" in om("watch", "--once", folder / "pipe.jsonl", code=66).stderr


def test_a_bad_file_among_good_ones_is_only_reported(om: Om) -> None:
    """As by `om observe`; alone it is what the run ends with."""
    folder, file = parts(om)
    file.write_text("nothing that anybody said\n", "utf-8")
    assert "not a transcript" in om("watch", "--once", folder, code=65).stderr
    (folder / "b.jsonl").write_text(tide_story().text(), "utf-8")
    om("watch", "--once", folder)
    om("watch", "--once", folder)
    om("watch", "--once", "--strict", folder, code=65)


def test_what_makes_no_sense_is_a_usage_error(om: Om) -> None:
    """A stream is no document, as with `om log --follow`; and what is not there at all is 66."""
    folder, _ = parts(om)
    om("watch", code=2)
    om("watch", folder, "--json", code=2)
    om("watch", folder, "--once", "--json", "--jsonl", code=2)
    om("watch", folder, "--interval", "-1", code=2)
    om("watch", folder, "--interval", "0", code=2)
    om("watch", folder, "--at-most-every", "nan", code=2)
    om("watch", folder, "--format", "morse", code=2)
    om("watch", "-", code=2)
    assert "no such file or folder" in om("watch", "nowhere", "--once", code=66).stderr
    run = om("watch", "nowhere", folder, "--once")
    assert run.stderr.startswith("om: nowhere does not exist yet; it is followed once it does\n")
    assert "disabled by OM_DISABLED" in om("watch", folder, env={"OM_DISABLED": "1"}).stderr
    assert not om.has_store


def test_links_are_followed_and_each_file_is_taken_in_once(om: Om) -> None:
    """A link to a folder above is no way round and round."""
    folder, _ = parts(om)
    elsewhere = om.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.jsonl").write_text(tide_story(session="a").text(), "utf-8")
    (folder / "linked").symlink_to(elsewhere)
    (folder / "again.jsonl").symlink_to(elsewhere / "a.jsonl")
    (folder / "below" / "up").symlink_to(folder)
    (folder / "lost.jsonl").symlink_to(om.folder / "nowhere")
    assert om("watch", "--once", folder, elsewhere / "a.jsonl").stderr.endswith("om: following 1 file\n")
    assert known(om) == 8


# As files grow


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_is_written_is_taken_in_until_it_is_ended(om: Om, number: signal.Signals, code: int) -> None:
    """Growth, a new file, a line that is written in two pieces, and a rewritten one; a file that goes is no error."""
    folder, file = parts(om)
    lines = tide_story(session="a").text().splitlines(keepends=True)
    file.write_text("".join(lines[:2]), "utf-8")
    with watching(om, folder, *QUICK, env=DUE) as watcher:
        watcher.waits_until_it_follows()
        assert known(om) == 2
        append(file, "".join(lines[2:5]) + lines[5][:40])
        watcher.waits_for(lambda: known(om) == 5)
        append(file, lines[5][40:])
        watcher.waits_for(lambda: known(om) == 6)
        new = folder / "below" / "deeper" / "b.jsonl"
        new.parent.mkdir()
        new.write_text(tide_story(session="b").text(), "utf-8")
        watcher.waits_for(lambda: known(om) == 14)
        new.unlink()
        beside = file.with_suffix(".new")
        beside.write_text("".join(lines), "utf-8")
        beside.replace(file)
        watcher.waits_for(lambda: known(om) == 16)
        watcher.waits_for(lambda: pending(om) == 0)
        written = len(rows(om))
        watcher.waits_for(lambda: watcher.stdout.count("\n") >= written)
        assert watcher.ends(number) == code
        assert watcher.stdout.count("\n") == len(rows(om)) == written
        assert "error" not in watcher.stderr
        assert "skipped" not in watcher.stderr
    assert_covered_once(om.place)
    assert number_of(om.place, "leases") == 0


def test_rows_can_be_streamed_as_json(om: Om) -> None:
    """Each is there as soon as it is written down."""
    folder, file = parts(om)
    with watching(om, folder, "--jsonl", *QUICK, env=DUE) as watcher:
        watcher.waits_until_it_follows()
        file.write_text(tide_story(session="a").text(), "utf-8")
        watcher.waits_for(lambda: known(om) == 8 and pending(om) == 0)
        written = [row["id"] for row in rows(om)]
        watcher.waits_for(lambda: watcher.stdout.count("\n") >= len(written))
        assert [json.loads(line)["id"] for line in watcher.stdout.splitlines()] == written


def test_a_path_that_comes_later_is_followed_when_it_comes(om: Om) -> None:
    folder, _ = parts(om)
    later = om.folder / "later"
    with watching(om, folder, later, *QUICK) as watcher:
        watcher.waits_until_it_follows()
        later.mkdir()
        (later / "a.jsonl").write_text(tide_story().text(), "utf-8")
        watcher.waits_for(lambda: known(om) == 8)


def test_a_file_that_never_rests_is_taken_in_now_and_then_and_its_last_state_always(om: Om) -> None:
    """Not at every look; and nothing of the burst is lost, however it is cut into writes."""
    folder, file = parts(om)
    talk = Talk(session="a")
    with watching(om, folder, "--interval", "0.05", "--at-most-every", "0.5") as watcher:

        def times() -> int:
            return watcher.stderr.count("tide.jsonl: claude-code")

        watcher.waits_until_it_follows()
        begin = time.monotonic()
        while times() < 3:
            line = talk.user(f"We decided to use port {8000 + len(talk.lines)}.").lines[-1]
            for piece in (line[:301], line[301:], "\n"):
                append(file, piece)
                time.sleep(0.02)
        watcher.waits_for(lambda: known(om) == len(talk.lines))
        assert times() <= (time.monotonic() - begin) / 0.5 + 2, watcher.stderr
        assert "skipped" not in watcher.stderr


def test_what_is_written_in_place_is_not_complained_of_while_it_is(om: Om) -> None:
    """One document is none until it is whole: a file that has just changed is left to rest."""
    folder, _ = parts(om)
    files = [folder / f"chat-{number}.json" for number in range(20)]
    text = json.dumps([{"role": "user", "content": f"We decided to use port {port}."} for port in range(50)])
    interval = 0.6
    with watching(om, *files, folder, "--interval", str(interval), "--at-most-every", "50") as watcher:
        watcher.waits_until_it_follows()
        for file in files:
            if slowest_of(file, [text[at : at + 200] for at in range(0, len(text), 200)]) < interval / 2:
                break  # it has never rested for as long as between two looks; on a busy machine that may take some more
        watcher.waits_for(lambda: f"{file}: openai, 50 messages" in watcher.stderr)
        assert watcher.stderr.count(f"{file}: ") == 1, "nothing else is said of it"


# What goes wrong


def test_what_is_wrong_with_a_file_is_said_once_and_it_is_tried_again_when_it_changes(om: Om) -> None:
    folder, file = parts(om)
    file.write_text("nothing that anybody said\n", "utf-8")
    with watching(om, folder, *QUICK) as watcher:
        watcher.waits_until_it_follows()
        watcher.looks_again(folder)
        append(file, "nor that\n")
        watcher.looks_again(folder)
        assert watcher.stderr.count(f"{file}: not a transcript") == 1
        file.write_text(tide_story().text(), "utf-8")
        watcher.waits_for(lambda: known(om) == 8)
        file.write_text("nothing again\n", "utf-8")
        watcher.waits_for(lambda: watcher.stderr.count(f"{file}: not a transcript") == 2)


def test_what_cannot_be_looked_at_is_said_once(om: Om) -> None:
    """And the rest is followed."""
    folder, file = parts(om)
    (om.folder / "round").symlink_to(om.folder / "and-round")
    (om.folder / "and-round").symlink_to(om.folder / "round")
    with watching(om, om.folder / "round", folder, *QUICK) as watcher:
        file.write_text(tide_story().text(), "utf-8")
        watcher.waits_for(lambda: known(om) == 8)
        assert watcher.stderr.count("cannot be looked at: Too many levels of symbolic links") == 1
    om("watch", "--once", om.folder / "round", code=66)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_said_once(om: Om) -> None:
    folder, file = parts(om)
    file.parent.chmod(0)
    try:
        with watching(om, folder, *QUICK) as watcher:
            watcher.waits_until_it_follows()
            time.sleep(0.5)
            assert watcher.stderr.count("cannot be looked at: Permission denied") == 1
            file.parent.chmod(0o700)
            file.write_text(tide_story().text(), "utf-8")
            watcher.waits_for(lambda: known(om) == 8)
    finally:
        file.parent.chmod(0o700)


def test_a_store_that_is_locked_is_tried_again(om: Om) -> None:
    """It is said once, however long it lasts; with one look only, the run ends with 75."""
    folder, file = parts(om)
    om("note", "The store is there.")
    with watching(om, folder, *QUICK, "--wait", "0.1") as watcher:
        watcher.waits_until_it_follows()
        with held(om.place):
            file.write_text(tide_story().text(), "utf-8")
            watcher.waits_for(lambda: "om: error: " in watcher.stderr)
            om("watch", "--once", folder, "--wait", "0", code=75)
            time.sleep(0.5)  # some rounds, of which nothing can be seen
            assert watcher.stderr.count("om: error: ") == 1
        watcher.waits_for(lambda: known(om) == 8)


@pytest.mark.file_store("its copies")
def test_a_store_that_is_put_back_from_a_copy_is_the_one_that_is_written_to(om: Om) -> None:
    """Between two looks it is open to nobody."""
    folder, file = parts(om)
    om("note", "The store is there.")
    copy = om.db.read_bytes()
    with watching(om, folder, *QUICK) as watcher:
        file.write_text(tide_story(session="a").text(), "utf-8")
        watcher.waits_for(lambda: known(om) == 8)
        watcher.waits_for(lambda: [path.name for path in om.db.parent.iterdir()] == [om.db.name])
        om.db.unlink()
        om.db.write_bytes(copy)
        append(file, more("a"))
        watcher.waits_for(lambda: known(om) == 9)


def test_a_store_of_a_later_version_ends_it(om: Om) -> None:
    """No later look would mend that: 78."""
    folder, file = parts(om)
    file.write_text(tide_story().text(), "utf-8")
    om("note", "The store is there.")
    make_newer(om.place)
    assert "upgrade om" in om("watch", folder, code=78).stderr


def test_a_model_that_cannot_be_had_is_said_before_any_work(om: Om) -> None:
    """Somebody who starts it at the beginning of a day is not told at its end; with --best-effort messages are kept."""
    folder, file = parts(om)
    file.write_text(tide_story().text(), "utf-8")
    om("watch", folder, "--observer", "anthropic", code=77)
    assert not om.has_store
    run = om("watch", "--once", folder, "--observer", "anthropic", "--best-effort", env=DUE)
    assert "om: warning: " in run.stderr
    assert (pending(om), rows(om)) == (8, [])
    file.write_text(tide_story().user("We decided to keep it.").text(), "utf-8")
    lacking = {**DUE, "OM_REFLECTOR_PROVIDER": "anthropic"}
    om("watch", "--once", folder, "--observer", "rules", env=lacking, code=77)
    om("watch", "--once", folder, "--observer", "rules", "--best-effort", env=lacking)
    assert pending(om) == 0, "that nobody reflects keeps nothing from being observed"


def test_a_model_that_fails_is_not_asked_with_every_look(om: Om) -> None:
    """It is said once, and messages wait; the other sessions are not tried either where it is down for all."""
    folder, _ = parts(om)
    for name in "abc":
        (folder / f"{name}.jsonl").write_text(tide_story(session=name).text(), "utf-8")
    model = always(om, {"error": "unreachable", "text": "the tide is out"})
    with watching(om, folder, "--model", model.model, *QUICK, env=DUE) as watcher:
        watcher.waits_until_it_follows()
        watcher.looks_again(folder)
        append(folder / "a.jsonl", more("a"))
        watcher.waits_for(lambda: known(om) == 25)
        watcher.looks_again(folder)
        assert watcher.stderr.count("the tide is out") == 1
        assert len(model.asked) == 1
        assert watcher.ends() == 130
    assert pending(om) == known(om) == 25
    run = om("watch", "--once", folder, "--model", model.model, env=DUE, code=69)
    assert "the tide is out" in run.stderr
    om("watch", "--once", folder, "--model", model.model, "--best-effort", env=DUE)


def test_a_model_that_declines_is_asked_again_when_there_is_more(om: Om) -> None:
    """The same would come of the same, and cost as much; and other sessions are not kept waiting."""
    folder, _ = parts(om)
    for name in "ab":
        (folder / f"{name}.jsonl").write_text(tide_story(session=name).text(), "utf-8")
    model = script(om, {"text": "I would rather not.", "stop": "refusal"}, "echo", "echo")
    with watching(om, folder, "--model", model.model, *QUICK, env=DUE) as watcher:
        watcher.waits_until_it_follows()
        assert len(model.asked) == 2
        watcher.looks_again(folder)
        assert len(model.asked) == 2
        append(folder / "a.jsonl", more("a"))
        watcher.waits_for(lambda: len(model.asked) == 3)
        watcher.waits_for(lambda: pending(om) == 0)


def test_nobody_reading_ends_it_after_the_round(om: Om) -> None:
    """With 141, and what was taken in is in the store."""
    folder, file = parts(om)
    file.write_text(tide_story(session="a").text(), "utf-8")
    process = om.start("watch", folder, *QUICK, env=DUE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 141
    assert pending(om) == 0
    assert process.stderr is not None
    process.stderr.close()
    assert process.stdin is not None
    process.stdin.close()


# Side by side


def test_two_that_watch_the_same_files_do_nothing_twice(om: Om) -> None:
    """T75: each message is covered once, each model call is made once, and neither has anything to complain of."""
    folder, _ = parts(om)
    model = always(om, {"text": "echo", "sleep": 0.3})
    env = {**DUE, "OM_WAIT": "30"}
    with (
        watching(om, folder, "--model", model.model, *QUICK, env=env) as first,
        watching(om, folder, "--model", model.model, *QUICK, env=env) as second,
    ):
        first.waits_until_it_follows()
        second.waits_until_it_follows()
        for name in "abcd":
            (folder / f"{name}.jsonl").write_text(tide_story(session=name).text(), "utf-8")
        first.waits_for(lambda: known(om) == 32 and pending(om) == 0)
        for each in (first, second):
            each.looks_again(folder)
        said = [line for line in (first.stderr + second.stderr).splitlines() if "bad-" not in line]
        assert not [line for line in said if "error" in line], said
        assert first.stdout.count("\n") + second.stdout.count("\n") == len(rows(om))
        assert (first.ends(), second.ends(signal.SIGTERM)) == (130, 143)
    assert len(model.asked) == 4
    assert_covered_once(om.place)
    assert number_of(om.place, "leases") == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_one_that_is_ended_while_a_model_thinks_leaves_nothing_behind(
    om: Om, number: signal.Signals, code: int
) -> None:
    """F23: no lease, and nothing half done; the next one does what it has left, though the file has not changed."""
    folder, file = parts(om)
    slow = always(om, {"text": "echo", **UNTIL}, name="slow.json")
    with watching(om, folder, "--model", slow.model, *QUICK, env=DUE) as watcher:
        watcher.waits_until_it_follows()
        file.write_text(tide_story(session="a").text(), "utf-8")
        watcher.waits_for(lambda: bool(slow.asked))
        assert watcher.ends(number) == code
    if number is not signal.SIGKILL:
        assert number_of(om.place, "leases") == 0
    assert (pending(om), rows(om)) == (8, [])
    om("watch", "--once", folder, "--model", always(om, "echo").model, "--wait", "0", env=DUE)
    assert pending(om) == 0
    assert_covered_once(om.place)


def test_what_one_leaves_that_is_killed_at_work_another_one_does(om: Om) -> None:
    """F23, T75: it has looked at the session meanwhile, and looks again, though nothing has come since."""
    folder, file = parts(om)
    slow = always(om, {"text": "echo", **UNTIL}, name="slow.json")
    quick = always(om, "echo", name="quick.json")
    with watching(om, folder, "--model", slow.model, *QUICK, env=DUE) as first:
        first.waits_until_it_follows()
        file.write_text(tide_story(session="a").text(), "utf-8")
        first.waits_for(lambda: bool(slow.asked))
        with watching(om, folder, "--model", quick.model, *QUICK, env=DUE) as second:
            second.waits_until_it_follows()
            second.looks_again(folder)
            assert quick.asked == []
            assert first.ends(signal.SIGKILL) == -9
            second.waits_for(lambda: pending(om) == 0)
            assert "error" not in "".join(line for line in second.stderr.splitlines() if "bad-" not in line)
    assert_covered_once(om.place)
