"""Disks that are full, read-only or forbidden: it is said in a line, nothing is damaged, and the next run goes on."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.conftest import Om
from tests.e2e.contents import Contents, assert_covered_once, contents, opened
from tests.e2e.transcripts import Talk, long_talk, tide_story
from tests.integration.sqlite.running import heed_permissions
from tests.soak import more_in_soak

pytestmark = pytest.mark.file_store("disks")

NOW = "2026-02-10T12:00:00Z"
"""Pinned: two stores are then the same to the instant."""


@pytest.fixture(scope="module")
def complete(new_om: Callable[[], Om]) -> tuple[list[str], Contents]:
    """A command that takes two sessions in, and what it leaves where there is room."""
    om = new_om()
    paths = [
        om.write(f"{name}.jsonl", long_talk(name, size, lines=40).text()) for name, size in (("a", 80), ("b", 600))
    ]
    command = ["observe", "-q", "--now", NOW, *map(str, paths)]
    om(*command)
    return command, contents(om.place)


def is_told_in_one_line(stderr: str) -> bool:
    error, *hint = stderr.splitlines()
    return error.startswith("om: error: ") and len(hint) <= 1 and all(line.startswith("hint: ") for line in hint)


@pytest.mark.parametrize("kilobytes", [0, 100, 300, *more_in_soak(3, 4, 31, 33, 50, 90, 150, 500)])
def test_a_store_that_may_not_grow_is_whole_and_the_next_run_completes_it(
    om: Om, complete: tuple[list[str], Contents], kilobytes: int
) -> None:
    """F32: a quota, wherever it is met: making the store, appending, observing."""
    command, expected = complete
    limited = run_in(om, f"ulimit -f {kilobytes}; exec {{om}} {' '.join(command)}")
    assert limited.returncode == 74, limited.stderr
    assert is_told_in_one_line(limited.stderr), limited.stderr
    with opened(om.place) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert om("log").stderr == ""
    om(*command)
    assert contents(om.place) == expected
    assert_covered_once(om.place)
    assert [path.name for path in om.db.parent.iterdir()] == [om.db.name]


@pytest.fixture(name="mount")
def small_disk(om: Om) -> str:
    return mounting(om)


def mounting(om: Om) -> str:
    """The shell command that puts a small disk where the store is, for that shell alone."""
    om.db.parent.mkdir()
    command = f"mount -t tmpfs -o size={{kilobytes}}k tmpfs {om.db.parent}; "
    if not shutil.which("unshare") or run_in(om, command, apart=True, kilobytes=100).returncode:
        pytest.skip("nothing can be mounted here")
    return command


@pytest.mark.parametrize("kilobytes", [60, 250, *more_in_soak(4, 36, 120, 400, 700)])
def test_a_store_on_a_full_disk_is_whole_and_is_completed_when_there_is_room(
    om: Om, mount: str, complete: tuple[list[str], Contents], kilobytes: int
) -> None:
    """F32."""
    command, expected = complete
    copy = om.folder / "copy"
    copy.mkdir()
    run = run_in(
        om,
        mount + "{om} {command} >/dev/null 2>told || echo $?; {om} log >/dev/null; "
        "mount -o remount,size=20m tmpfs {folder}; {om} {command} >/dev/null; cp {folder}/* {copy}",
        apart=True,
        kilobytes=kilobytes,
        command=" ".join(command),
        folder=om.db.parent,
        copy=copy,
    )
    assert (run.returncode, run.stdout) == (0, "74\n"), run.stderr
    assert is_told_in_one_line((om.folder / "told").read_text())
    assert contents(copy / om.db.name) == expected
    assert_covered_once(copy / om.db.name)
    assert [path.name for path in copy.iterdir()] == [om.db.name]


def test_a_store_on_a_full_disk_can_be_read(om: Om, mount: str) -> None:
    """F32, F51: SQLite has no room for what it keeps beside a store that is read."""
    tide = om.write("tide.jsonl", tide_story().text())
    run = run_in(
        om,
        mount + "{om} observe -q {tide} >log; head -c 2m /dev/zero >{folder}/fill 2>/dev/null || true; "
        "{om} log | cmp - log; {om} context -q --to json >/dev/null; {om} status; ! {om} note x",
        kilobytes=700,
        apart=True,
        tide=tide,
        folder=om.db.parent,
    )
    assert run.returncode == 0, run.stderr
    assert is_told_in_one_line(run.stderr), run.stderr


def test_a_disk_that_is_read_only_is_read_and_not_written(om: Om, mount: str) -> None:
    """F32, F51."""
    tide = om.write("tide.jsonl", tide_story().text())
    more = om.write("more.jsonl", Talk(session="more").user("Please rename the flag.").text())
    run = run_in(
        om,
        mount + "{om} observe -q {tide} >log; mount -o remount,ro tmpfs {folder}; {om} log | cmp - log; "
        "{om} context -q >/dev/null; "
        "for db in {db} {folder}/new.db; do {om} observe -q --db $db {more} || echo $?; done",
        kilobytes=1200,
        apart=True,
        tide=tide,
        more=more,
        db=om.db,
        folder=om.db.parent,
    )
    assert (run.returncode, run.stdout) == (0, "74\n73\n"), run.stderr
    first, second = (line for line in run.stderr.splitlines() if line.startswith("om: error: "))
    assert "memory.db cannot be opened" in first
    assert "cannot create" in second


class TestPermissions:
    """As a user to whom they apply: root is denied nothing."""

    @pytest.fixture
    def denied(self, om: Om) -> Callable[..., subprocess.CompletedProcess[str]]:
        om.write("log", om("observe", "-q", stdin=tide_story().text()).stdout)

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                om.command(*arguments),
                input=tide_story().user("We decided to use PNG.").text(),
                capture_output=True,
                text=True,
                env=om.environment(),
                preexec_fn=heed_permissions,
                check=False,
            )

        return run

    @pytest.mark.parametrize("what", ["file", "folder", "both"])
    def test_a_store_that_may_not_be_written_is_read_and_stays_as_it_is(
        self, om: Om, denied: Callable[..., subprocess.CompletedProcess[str]], what: str
    ) -> None:
        """F32, F51: exit 74, one line; what was not taken in is taken in once it may be written."""
        content = om.db.read_bytes()
        if what in ("file", "both"):
            om.db.chmod(0o400)
        if what in ("folder", "both"):
            om.db.parent.chmod(0o500)
        run = denied("observe", "-q")
        assert (run.returncode, run.stdout) == (74, "")
        assert is_told_in_one_line(run.stderr), run.stderr
        assert denied("log").stdout == (om.folder / "log").read_text()
        om.db.parent.chmod(0o700)
        om.db.chmod(0o600)
        assert om.db.read_bytes() == content
        run = denied("observe")
        assert run.stdout.count("\n") == 1, run.stderr

    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_a_store_that_may_not_be_read_is_exit_74_for_every_verb(
        self, om: Om, denied: Callable[..., subprocess.CompletedProcess[str]], what: str
    ) -> None:
        """XE7: it is not taken for an empty or a missing one."""
        (om.db if what == "file" else om.db.parent).chmod(0o000)
        for verb in ("observe", "context", "status", "log", "reflect", "consolidate", "undo"):
            run = denied(verb)
            assert (run.returncode, run.stdout) == (74, ""), verb
            assert is_told_in_one_line(run.stderr), run.stderr
        om.db.parent.chmod(0o700)
        assert [path.name for path in om.db.parent.iterdir()] == [om.db.name]

    def test_a_folder_in_which_no_store_may_be_made_is_exit_73(
        self, om: Om, denied: Callable[..., subprocess.CompletedProcess[str]]
    ) -> None:
        """F32."""
        om.db.parent.chmod(0o500)
        run = denied("observe", "--db", str(om.db.parent / "new.db"))
        assert (run.returncode, run.stdout) == (73, "")
        assert is_told_in_one_line(run.stderr), run.stderr
        om.db.parent.chmod(0o700)
        assert [path.name for path in om.db.parent.iterdir()] == [om.db.name]


def run_in(
    om: Om, script: str, *, apart: bool = False, heeds: bool = False, **names: object
) -> subprocess.CompletedProcess[str]:
    """Run a shell script in which `{om}` stands for the command. `apart` gives it namespaces of its own, to mount disks
    in. With `heeds`, permissions also apply to root.
    """
    shell = ["unshare", "-rm", "bash", "-euo", "pipefail", "-c"] if apart else ["bash", "-c"]
    return subprocess.run(
        [*shell, script.format(om=shlex.join(om.command()), **names)],
        capture_output=True,
        text=True,
        env=om.environment(),
        cwd=om.folder,
        timeout=120,
        check=False,
        preexec_fn=heed_permissions if heeds else None,
    )
