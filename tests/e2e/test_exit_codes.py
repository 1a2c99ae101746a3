"""How commands end: exit codes, signals, streams that are closed or full, and help."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import shlex
import signal
import socket
import sqlite3
import struct
import subprocess
import termios
import time
from contextlib import closing
from pathlib import Path

import pytest
from rich.cells import cell_len as width

from omcli import __version__
from omcli.cli.commands import COMMANDS
from tests.conftest import Om
from tests.e2e.background import wait_until
from tests.e2e.contents import beside, connected, held, make_newer
from tests.e2e.transcripts import Talk, tide_story
from tests.soak import first_only


def shell(om: Om, script: str) -> subprocess.CompletedProcess[str]:
    """Runs a shell script in which `om` stands for the command."""
    script = script.replace("om ", f"{shlex.join(om.command())} ")
    return subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        env=om.environment(),
        cwd=om.folder,
        timeout=300,
        check=False,
    )


def test_help_and_version_go_to_stdout(om: Om) -> None:
    assert om("--version").stdout == om.process("--version").stdout == f"om {__version__}\n"
    versions = om("--version", "--json").document
    assert versions == om("--json", "--version").document
    assert versions["version"] == __version__
    assert versions["store_version"] == om("status", "--json").document["schema_version"]
    assert versions["sqlite"] == sqlite3.sqlite_version
    overview = om("--help").stdout
    assert all(f"\n  {name} " in overview for name in COMMANDS)
    assert "..." not in overview.partition("Commands:")[2], "what a command does is told in full"
    assert om("-h").stdout == overview
    for name in COMMANDS:
        text = om(name, "--help").stdout
        assert text.startswith(f"Usage: om {name} [OPTIONS]")
        assert f"  om {name}" in text, "every command shows an example"
        assert "\x1b" not in text
        assert all(len(line) <= 80 for line in text.splitlines()), text


def test_without_a_command_help_goes_to_stderr_and_the_code_is_2(om: Om) -> None:
    run = om(code=2)
    assert run.stdout == ""
    assert run.stderr == om("--help").stdout


def test_a_typo_is_met_with_a_suggestion(om: Om) -> None:
    assert "Did you mean 'observe'" in om("obsreve", code=2).stderr
    assert "--session" in om("log", "--sesion", "x", code=2).stderr
    assert om("log", "--sesion", "x", code=2).stderr.endswith("hint: try `om log --help`\n")
    assert "options come after the command" in om("--since", "7d", "log", code=2).stderr
    assert json.loads(om("show", "--json", code=2).stderr)["error"]["exit_code"] == 2


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_scripts_and_completions_work(om: Om, shell_name: str) -> None:
    script = om(env={"_OM_COMPLETE": f"source_{shell_name}"}).stdout
    assert "_OM_COMPLETE" in script
    words = {"_OM_COMPLETE": f"complete_{shell_name}", "COMP_WORDS": "om se", "COMP_CWORD": "1"}
    words |= {"_TYPER_COMPLETE_ARGS": "om se", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert "sessions" in om(env=words).stdout


def test_names_and_ids_are_completed(om: Om) -> None:
    """Every TAB starts `om`: the store is only read, and nothing is said when that fails."""

    def completed(words: str, **extra: str) -> str:
        environment = {
            "_OM_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
            **extra,
        }
        run = om(env=environment)
        assert run.stderr == ""
        return run.stdout

    assert completed("om show ").split() == completed("om context --session ").split() == []
    assert not om.has_store
    handle = om("note", "x").stdout[:8]
    assert completed("om undo ").split() == []
    om("forget", handle)
    assert completed("om undo ").split() == ["1"]
    om("undo")
    assert completed("om undo ").split() == [], "what was taken back is not offered"
    om("observe", "-q", stdin=tide_story().text())
    assert handle in completed("om show ").split()
    assert completed("om context --session 5d").split() == [tide_story().session]
    assert "claude-code" in completed("om observe --format ").split()
    assert "chars-4" in completed("om tokens --counter chars").split()
    assert "high" in completed("om log --priority ").split()
    assert completed("om show ", OM_DB=__file__).split() == []
    assert "observe" in completed("om nonsense ").split(), "an unknown command is no error of the shell's"


def test_numbers_beyond_all_bounds_are_cut_down_or_refused(om: Om) -> None:
    om("observe", "-q", stdin=tide_story().text())
    assert om("context", "--budget", "9" * 30).stdout == om("context", "--tail-budget", "9" * 30).stdout
    assert om("log", "--last", "9" * 30).stdout == om("log").stdout
    assert om("sessions", "--last", "9" * 30).stdout == om("sessions").stdout
    for wait in ("nan", "inf", "-1", "soon"):
        assert om("log", "--wait", wait, code=2).stdout == ""


def test_a_directory_that_is_gone_is_said_so(om: Om) -> None:
    gone = om.folder / "gone"
    gone.mkdir()
    run = shell(om, "cd gone; rmdir ../gone; om note x")
    assert (run.returncode, run.stderr) == (66, "om: error: the current directory no longer exists\n")
    assert not om.has_store, "a command that fails before it begins makes no store"


def test_full_output_is_exit_74_and_one_line(om: Om) -> None:
    """F32: without a traceback, and what was taken in is kept."""
    om.write("tide.jsonl", tide_story().text())
    for command in ("observe -q tide.jsonl", "log", "context", "status", "sessions", "--help", "--version"):
        run = shell(om, f"om {command} > /dev/full")
        assert run.returncode == 74, command
        assert run.stderr.splitlines()[-1] == "om: error: cannot write the output: No space left on device", run.stderr
        assert "Traceback" not in run.stderr
    assert len(om("sessions", "--jsonl").lines) == 1


@pytest.mark.file_store("disks")
def test_a_store_that_fails_at_one_of_several_files_ends_the_run_with_its_code(om: Om) -> None:
    """F32, D3, D4: what went well before does not make it a success, and the next file would fail as well."""
    om.write("small.jsonl", tide_story().text())
    big = Talk(session="big")
    for number in range(1500):
        big.user(f"prompt number {number}: {'very ' * 60}long")
    om.write("big.jsonl", big.text())
    om.write("last.jsonl", Talk(session="last").user("We decided to use PNG.").text())

    run = shell(
        om, "ulimit -f 700; om observe --counter chars-4 small.jsonl big.jsonl last.jsonl"
    )  # no file may grow beyond 700 kB
    assert run.returncode == 74, run.stderr
    assert "small.jsonl: claude-code, 8 messages (8 new)" in run.stderr
    assert "om: error: big.jsonl: " in run.stderr
    assert run.stderr.endswith("om: 1 more input not read: the store failed\n")
    assert "Traceback" not in run.stderr

    again = om("observe", "--json", "--counter", "chars-4", "small.jsonl", "big.jsonl", "last.jsonl").document["files"]
    assert [report["messages"] for report in again] == [8, 1500, 1]
    assert again[0]["new_messages"] == 0
    assert om("status", "--json").document["pending"] == 0


def test_a_note_that_could_not_be_printed_is_kept_and_that_is_said(om: Om) -> None:
    """F32: or it would be written down twice."""
    for number, target in enumerate(("/dev/full", "&-"), start=1):
        run = shell(om, f"om note 'note {number}' >{target}")
        assert run.returncode == 74
        assert run.stderr.startswith("om: error: the note was stored but could not be printed: "), run.stderr
        assert len(om("log").stdout.splitlines()) == number


def test_a_closed_output_is_no_traceback(om: Om) -> None:
    om("observe", stdin=tide_story().text())
    assert shell(om, "om log >&-").returncode == 74
    assert shell(om, "om log 2>&-").returncode == 0
    assert shell(om, "om log 2>/dev/full").returncode == 0
    assert shell(om, "om observe <&-").returncode == 66
    assert shell(om, "om recall --queries-file - <&-").returncode == 66


def test_a_store_that_cannot_be_made_is_exit_73(om: Om) -> None:
    om.write("file", "")
    run = om("observe", "--db", om.folder / "file" / "memory.db", stdin=tide_story().text(), code=73)
    assert run.stdout == ""
    assert run.stderr.startswith("om: error: -: cannot create ")
    assert om("note", "x", "--db", om.folder, code=None).code in (73, 74, 78)


def test_a_file_that_is_no_store_is_exit_78_and_stays_as_it_is(om: Om) -> None:
    path = om.write("prose.db", "This is no database, and nobody may write to it.\n" * 50)
    before = path.read_bytes()
    for command in (["log"], ["context"], ["note", "x"], ["status"]):
        assert om(*command, "--db", path, code=78).stderr.startswith("om: error: ")
    assert path.read_bytes() == before


def test_a_store_of_a_later_version_is_exit_78_and_stays_as_it_is(om: Om) -> None:
    """F30."""
    om("note", "x")
    make_newer(om.place)
    for command in (["log"], ["note", "y"]):
        assert "9999" in om(*command, code=78).stderr


def test_a_locked_store_is_exit_75_while_reading_goes_on(om: Om) -> None:
    """T67, F27, S2.39: nothing is silently dropped; `--strict` leaves it to the caller to try again."""
    row = om("observe", "--json", stdin=tide_story().text()).document["files"][0]["rows"][0]["id"]
    grown = om.write("grown.jsonl", tide_story().user("We decided to use PNG.").text())
    with held(om.place):
        for command in (["note", "x", "--strict"], ["note", "x", "--resolves", row], ["observe", grown]):
            run = om(*command, "--wait", "0.2", code=75)
            assert (run.stdout, run.stderr.splitlines()[0].startswith("om: error: ")) == ("", True)
            assert "another process is writing" in run.stderr
        strict = om("observe", "--json", "--strict", stdin=grown.read_text(), env={"OM_WAIT": "0.2"}, code=75)
        assert strict.stdout == ""
        assert om("log").stdout
        assert om("context").stdout
    assert beside(om.place) == []
    assert om("observe", "--json", grown).document["files"][0]["new_messages"] == 1


def test_a_lock_met_at_one_of_several_files_is_exit_75(om: Om) -> None:
    """D3, D4: 0 would say that all was taken in."""
    om.write("known.jsonl", "")
    om.write("tide.jsonl", tide_story().text())
    om("note", "x")
    with held(om.place):
        run = om("observe", "known.jsonl", "tide.jsonl", "nowhere.jsonl", "--wait", "0.2", code=75)
        om("observe", "nowhere.jsonl", "tide.jsonl", "--wait", "0.2", code=75)
    assert run.stderr.startswith("known.jsonl: no messages\n")
    assert "nowhere.jsonl: no such file" in run.stderr, "the lock may be gone by the next file"


def test_a_lane_held_by_somebody_else_is_exit_75_with_the_messages_kept(om: Om) -> None:
    """T75, F21, F24: the next run, after the lease has ended, covers them."""
    om("observe", stdin=tide_story().text())
    with connected(om.place) as connection:
        number = connection.execute("SELECT number FROM sessions").fetchone()[0]
        connection.execute(
            "INSERT INTO leases (session, lane, owner, expires_at)"
            " VALUES (?, 'observe', 'elsewhere:1:1', '2099-01-01T00:00:00.000Z')",
            (number,),
        )
    grown = tide_story().user("We decided to use PNG.").text()

    run = om("observe", "--json", "--wait", "0.2", stdin=grown, code=75)
    (report,) = run.document["files"]
    assert (report["new_messages"], report["error"]["slug"]) == (1, "lane-taken")
    assert json.loads(run.stderr.splitlines()[-1])["error"]["exit_code"] == 75
    assert om("status", "--json").document["pending"] == 1

    (later,) = om("observe", "--json", "--now", "2099-01-02T00:00Z", stdin=grown).document["files"]
    assert (later["new_messages"], later["observations"]) == (0, 1)
    assert om("status", "--json").document["pending"] == 0


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("tick", 1), ("tick --check", 1), ("tick --background", 1), ("reflect", 0), ("reflect --global", 0),
        ("prune --older-than 1d", 0), ("prune --hard --yes", 0), ("forget --match x", 1),
        ("forget --match x --hard --yes", 1), ("undo", 65), ("history", 0), ("status", 0), ("consolidate", 0),
    ],
)  # fmt: skip
def test_who_only_works_on_what_is_there_makes_no_store(om: Om, command: str, code: int) -> None:
    """It is as if there was nothing in it; a command that takes something in makes one."""
    for more in ([], ["--json"]):
        om(*command.split(), *more, code=code)
        assert not om.has_store
        assert not om.db.parent.exists()


@pytest.mark.parametrize(
    "command", ["consolidate --session a-session-to-come", "prune --hard --yes", "tick --session a-session-to-come"]
)
def test_what_a_run_reads_and_writes_through_is_closed_behind_it(om: Om, command: str) -> None:
    """Nothing is left beside the store by those that open it twice."""
    om("note", "The store is there.")
    om(*command.split(), code=None)
    assert beside(om.place) == []


@pytest.mark.parametrize("number", first_only([signal.SIGTERM, signal.SIGINT]))
def test_an_interrupted_run_ends_with_its_code_and_leaves_nothing_half_done(om: Om, number: signal.Signals) -> None:
    """F93, F23: the run has kept some messages and waits for the rest of its input when the signal comes."""
    talk = Talk()
    for at in range(600):  # more bytes than are looked at before the first one is kept, and more messages than at once
        talk.user(f"prompt number {at}", toolUseResult="x" * 2000)
    process = om.start("observe", "--counter", "chars-4")
    assert process.stdin is not None
    process.stdin.write(talk.text().encode())
    process.stdin.flush()
    wait_until(lambda: om.has_store or process.poll() is not None)  # now it keeps
    time.sleep(0.2)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (128 + number, b"")
    assert b"Traceback" not in stderr
    run = om("observe", "--json", "--counter", "chars-4", stdin=talk.text())
    assert run.document["files"][0]["messages"] == 600
    assert om("status", "--json").document["pending"] == 0


def test_progress_is_shown_on_a_terminal_only(om: Om) -> None:
    talk = Talk()
    for at in range(1200):
        talk.user(f"prompt number {at}")
    transcript = om.write("long.jsonl", talk.text())
    leader, follower = pty.openpty()
    with subprocess.Popen(
        om.command("observe", transcript),
        stdout=subprocess.DEVNULL,
        stderr=follower,
        env=om.environment({"TERM": "xterm"}),
    ):
        os.close(follower)
        shown = b""
        while chunk := _read(leader):
            shown += chunk
    os.close(leader)
    assert re.search(rb"\r\x1b\[2K[^\n]*: \d+ messages", shown), shown
    assert shown.rstrip().endswith(b"observations") or b"1200 messages (1200 new)" in shown
    assert "\r" not in om("observe", transcript).stderr


def test_what_is_printed_takes_the_place_of_progress_on_the_same_terminal(om: Om) -> None:
    talk = Talk()
    for at in range(1200):
        talk.user(f"We decided to build boat {at}.")
    transcript = om.write("long.jsonl", talk.text())
    leader, follower = pty.openpty()
    command = om.command("compact", transcript, "--target-tokens", "500")
    with subprocess.Popen(command, stdout=follower, stderr=follower, env=om.environment({"TERM": "xterm"})):
        os.close(follower)
        shown = b""
        while chunk := _read(leader):
            shown += chunk
    os.close(leader)
    assert b": 1200 messages" in shown
    assert b"\r\x1b[2K<om-memory" in shown, "progress is taken away first"


@pytest.mark.parametrize(("kind", "is_shown"), [("xterm", True), ("dumb", False)])
def test_progress_is_one_line_on_a_terminal_that_can_clear_one(om: Om, kind: str, is_shown: bool) -> None:
    talk = Talk()
    for at in range(1200):
        talk.user(f"prompt number {at}")
    folder = om.folder / ("a folder with quite a long name " * 3)
    folder.mkdir()
    transcript = folder / "潮汐.jsonl"
    transcript.write_text(talk.text(), "utf-8")
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    command, environment = om.command("observe", "--later", transcript), om.environment({"TERM": kind})
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower, env=environment):
        os.close(follower)
        shown = b""
        while chunk := _read(leader):
            shown += chunk
    os.close(leader)
    assert (b"\x1b" in shown) is is_shown
    lines = re.sub(r"\x1b\[[0-9;?]*[hlm]", "", shown.decode()).split("\r")
    progress = [text for line in lines if (text := line.removeprefix("\x1b[2K")).endswith(" messages")]
    assert bool(progress) is is_shown
    assert all(width(line) < 60 for line in progress), progress
    assert not is_shown or re.search("潮汐.jsonl: [0-9]+ messages$", progress[-1]), "what is cut is its beginning"


@pytest.mark.parametrize("line", [["undo", "x"], ["prune", "--keep-last", "x"], ["watch", "--interval", "x", "."]])
def test_wrong_use_is_told_in_plain_words(om: Om, line: list[str]) -> None:
    run = om(*line, code=2)
    assert re.search(r"`x` is not valid \(expected a (whole )?number", run.stderr)
    assert "valid int" not in run.stderr


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other end was closed
        return b""


def test_the_store_is_in_the_user_s_data_folder_unless_told_otherwise(om: Om) -> None:
    """D10: a folder of its own, for the user alone."""
    data = om.home / ".data"
    om("note", "x", env={"OM_DB": "", "XDG_DATA_HOME": str(data)})
    store = data / "om" / "memory.db"
    assert store.is_file()
    assert store.stat().st_mode & 0o077 == 0
    assert store.parent.stat().st_mode & 0o077 == 0
    elsewhere = om.folder / "elsewhere.db"
    om("note", "x", "--db", elsewhere)
    assert elsewhere.is_file()
    assert not Path(om.db).exists()


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "..", "/", "mysql://host/memory", "sqlite:///memory.db", "~no-such-user/x",
        ":memory:", "./:memory:", "file::memory:", "file:x?mode=memory",
    ],
)  # fmt: skip
def test_what_cannot_be_a_store_is_refused_and_nothing_is_made(om: Om, path: str) -> None:
    """XE7: as an option, in a variable and in a file."""
    before = sorted(om.folder.iterdir())
    run = om("note", "x", "--db", path, code=2)
    assert re.match(r"om: error: `--db .*` (is (a URL|not a path)|names (a folder|an unknown user))\n", run.stderr)
    if path:
        assert "`OM_DB " in om("note", "x", env={"OM_DB": path}, code=78).stderr
    assert sorted(om.folder.iterdir()) == before


_VERBS = (
    "observe -", "context", "status", "log", "show x", "reflect", "tick", "consolidate", "undo", "history",
    "sessions", "note x", "compact --session x", "forget --match x", "prune --older-than 1d", "pending --session x",
    "export --to pi", "log --follow", "observe - --estimate",
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "code", "told"),
    [
        ("socket", 78, "is not a store but a socket"),
        ("folder", 78, "is not a store but a folder"),
        ("/dev/null", 78, "is not a store but a device"),
        ("/dev/full", 78, "is not a store but a device"),
        ("prose", 78, "is not a store"),
        ("broken", 78, "is a link to nowhere, which does not exist"),
        ("broken/memory.db", 78, "is a link to nowhere, which does not exist"),
        ("prose/memory.db", 73, "cannot create prose/memory.db: Not a directory"),
        ("loop", 74, "cannot read loop: "),
        ("loop/memory.db", 74, "cannot read loop/memory.db: "),
    ],
)
def test_a_path_that_leads_to_no_store_is_refused_alike_by_every_verb(om: Om, path: str, code: int, told: str) -> None:
    """XE7: at once, in one line with a hint, and everything stays as it was."""
    _odd_files(om.folder)
    before = _files(om.folder)
    for verb in _VERBS:
        run = om(*verb.split(), "--db", path, stdin=tide_story().text(), code=code)
        assert run.stdout == ""
        assert told in run.stderr, verb
        assert run.stderr.count("om: error: ") == run.stderr.count("\nhint: ") == 1, run.stderr
        assert told in om(*verb.split(), stdin=tide_story().text(), env={"OM_DB": path}, code=code).stderr
    assert _files(om.folder) == before


@pytest.mark.parametrize("verb", ["observe -", "context", "status", "log", "reflect", "consolidate"])
def test_a_named_pipe_in_place_of_the_store_is_not_waited_for(om: Om, verb: str) -> None:
    """XE7: SQLite would open it, and wait for a writer for ever."""
    _odd_files(om.folder)
    run = om.process(*verb.split(), "--db", "pipe", stdin=tide_story().text(), code=78, seconds=60)
    assert (run.stdout, run.stderr.count("\n")) == ("", 2)
    assert run.stderr.endswith("pipe is not a store but a named pipe\nhint: name another file with --db\n")


def test_an_empty_file_and_a_link_to_a_store_are_stores(om: Om) -> None:
    """XE7: as `mktemp` makes one, or a store on another disk."""
    store = om.write("empty.db", "")
    link = om.folder / "link.db"
    link.symlink_to(store)
    assert om("log", "--db", store).stdout == ""
    assert store.read_bytes() == b""
    om("note", "The tide turns at noon.", "--db", link)
    assert om("log", "--db", store).stdout == om("log", "--db", link).stdout != ""
    assert link.is_symlink()


def _odd_files(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    # The whole path may be too long for a socket.
    with closing(socket.socket(socket.AF_UNIX)) as listener, contextlib.chdir(folder):
        listener.bind("socket")
    (folder / "folder").mkdir()
    (folder / "prose").write_text("This is no database.\n" * 50)
    (folder / "broken").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")


def _files(folder: Path) -> list[tuple[str, int, int]]:
    stats = ((path.name, path.lstat()) for path in folder.rglob("*"))
    return sorted((name, found.st_mode, found.st_size) for name, found in stats)


def test_a_url_is_named_by_its_scheme_alone(om: Om) -> None:
    """XE7: the rest may hold a password."""
    run = om("log", "--db", "mysql://me:word@host/memory", code=2)
    assert run.stderr.startswith(
        "om: error: `--db mysql://…` is a URL\nhint: name the path of a file, or a database as"
    )
    assert "word" not in run.stderr


def test_the_home_folder_is_found_in_every_path(om: Om) -> None:
    """XE7: also where the shell has not replaced it, as in `--db=~/x`."""
    om("note", "x", "--db", "~/memory.db")
    assert (om.home / "memory.db").is_file()
    assert om("log", env={"OM_DB": "~/memory.db"}).stdout
    assert not (om.folder / "~").exists()
    assert om("log", "--project", "~no-such-user/x").stdout == ""


@pytest.mark.parametrize("now", ["9999-12-31T23:59:59Z", "9999-12-31", "9999-12-31T23:59:59-12:00", "0001-01-01"])
def test_no_time_is_the_last_one(om: Om, now: str) -> None:
    """XE7: a lease ends later, and a day has an end."""
    om("note", "x")
    for command in (["consolidate"], ["note", "y"], ["log", "--since", "7d"]):
        assert "is not a valid time" in om(*command, "--now", now, code=2).stderr


def test_no_number_is_too_large(om: Om) -> None:
    """XE7."""
    large = "9" * 30
    om("note", "x")
    assert "no operation has the number" in om("undo", large, code=65).stderr
    for option in (["log", "--since", f"{large}d"], ["prune", "--older-than", f"{large}y"]):
        assert "is not a valid time" in om(*option, code=2).stderr


@pytest.mark.parametrize(
    "damage",
    [
        "observations SET text = CAST(x'ff80' AS TEXT)",
        "observations SET metadata = CAST(x'ff80' AS TEXT)",
        "observations SET type = 'bird'",
        "observations SET tags = '['",
        "sessions SET id = CAST(x'ff80' AS TEXT)",
    ],
)
@pytest.mark.file_store("damage")
def test_a_damaged_cell_is_a_damaged_store(om: Om, damage: str) -> None:
    """XE7: 74, as for a damaged page, not a bug."""
    om("observe", "-q", stdin=Talk().user("We decided to use port 8080.").text())
    with connected(om.place) as connection:
        connection.execute(f"UPDATE {damage}")
    run = om("log", "--jsonl", code=74)
    assert f"{om.db} is damaged: " in run.stderr
    assert "`om restore` puts a backup" in run.stderr


def test_a_lease_of_another_machine_ends_whatever_its_end(om: Om) -> None:
    """XE7: the first one that is refused limits it to ten minutes."""
    talk = Talk(session="s").user("We decided to use port 8080.").text()
    om("observe", "--later", "--now", "2026-03-01T09:00Z", stdin=talk)
    with connected(om.place) as connection:
        connection.execute(
            "INSERT INTO leases (session, lane, owner, expires_at)"
            " SELECT number, 'observe', 'elsewhere:1:1', '9999-12-31T23:59:59.999Z' FROM sessions"
        )
    tick = ("tick", "--session", "s", "--wait", "0")
    om(*tick, "--now", "2026-03-01T10:00Z", code=75)
    om(*tick, "--now", "2026-03-01T10:09Z", code=75)
    om(*tick, "--now", "2026-03-01T10:11Z")
