"""`om schedule`: what is printed holds with the real tools, and what is installed can be taken away again."""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Om
from tests.e2e.scripts import pending, rows
from tests.e2e.transcripts import tide_story

ROOT = Path(__file__).parents[2]
CRONTAB = """\
#!/bin/sh
echo "$*" >>"$SPOOL.log"
fail() { echo "$1" >&2; exit 1; }
[ -z "${REFUSES+x}" ] || fail "You (ada) are not allowed to use this program (crontab)
See crontab(1) for more information"
case "$*" in
-l) [ -e "$SPOOL" ] || fail "no crontab for ada"; cat "$SPOOL" ;;
-)
    cat >"$SPOOL.new"
    [ -z "$(tail -c 1 "$SPOOL.new")" ] || fail "new crontab file is missing newline before EOF, can't install."
    mv "$SPOOL.new" "$SPOOL" ;;
*) fail usage ;;
esac
"""
"""Keeps a crontab as `crontab` does."""

ANSWERING = """\
#!/bin/sh
echo "$*" >>"$TOLD"
[ -z "${REFUSES+x}" ] || { echo "Failed to connect to bus: No medium found" >&2; exit 1; }
"""
"""Writes down what it is told, as `systemctl` or `launchctl`."""

FOREIGN = b"MAILTO=ada\n# m h dom mon dow\n0 4 * * * /bin/backup 100\\% # caf\xe9\n"


class Installed(Om):
    """An `om` that is a program, and needs no environment to be one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.program = [str(folder / "om")]
        self.argv0 = self.program[0]


@pytest.fixture
def om(tmp_path: Path) -> Om:
    """The `om` command of this checkout, installed where everybody can start it."""
    return installed(tmp_path)


PROGRAM = f"""\
#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT)!r})
from omcli.__main__ import main
main()
"""
STARTS = '#!/bin/sh\ntest "$*" = --version\n'
"""A program in place of `om` that can be started, for tests that start it to see that and for no other reason."""


def installed(folder: Path) -> Om:
    """The `om` command of this checkout in a folder, with a home in it."""
    executable(folder / "om", PROGRAM)
    return Installed(folder)


def executable(program: Path, text: str) -> None:
    """Writes a program."""
    program.write_text(text, "utf-8")
    program.chmod(0o755)


@pytest.fixture
def machine(om: Om) -> dict[str, str]:
    """The environment of somebody whose schedulers' programs are nobody else's."""
    commands = om.folder / "bin"
    commands.mkdir()
    for name, text in (("crontab", CRONTAB), ("systemctl", ANSWERING), ("launchctl", ANSWERING)):
        executable(commands / name, text)
    executable(om.folder / "om", STARTS)
    return {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "SPOOL": str(om.folder / "spool"),
        "TOLD": str(om.folder / "told"),
    }


def told(om: Om) -> list[str]:
    """What the scheduler's program was told."""
    file = om.folder / "told"
    return file.read_text("utf-8").splitlines() if file.exists() else []


def files(om: Om) -> dict[str, bytes]:
    """All files below the home, by name."""
    return {str(path.relative_to(om.home)): path.read_bytes() for path in om.home.rglob("*") if path.is_file()}


# What is printed


@pytest.mark.parametrize("kind", ["--cron", "--systemd", "--launchd"])
def test_what_is_printed_names_everything_by_absolute_paths_and_no_secret(om: Om, kind: str) -> None:
    """F97: and what a run says on stderr is thrown away nowhere."""
    env = {
        "ANTHROPIC_API_KEY": "sk-ant-tide-7",
        "OM_OBSERVER_MODEL": "command/say --key sk-tide-8",
        "OM_PRESET": "zora",
    }
    config = om.write("my config.toml", "")
    run = om("schedule", kind, "--config", "my config.toml", "--db", "my store.db", env=env)
    assert "tide" not in run.stdout + run.stderr
    for wanted in ("consolidate", "zora", str(config), str(om.folder / "my store.db"), str(om.home / ".config/om/env")):
        assert wanted in run.stdout, wanted
    assert "2>/dev/null" not in run.stdout
    assert "2>>" in run.stdout or "2&gt;&gt;" in run.stdout or "StandardError=journal" in run.stdout
    assert run.stderr == (
        "om: a scheduled run will not see ANTHROPIC_API_KEY, OM_OBSERVER_MODEL; "
        f"it reads {om.home / '.config/om/env'}\n"
    )
    assert files(om) == {}
    document = om("schedule", kind, "--json", env=env).document
    assert document["command"][:2] == [str(om.folder / "om"), "consolidate"]
    assert (document["when"], document["job"]) == ("03:00", "consolidate")
    assert "tide" not in str(document)


def test_one_scheduler_has_to_be_named(om: Om) -> None:
    """Two would run a job twice; and the one that machines like this have is suggested."""
    run = om("schedule", code=2)
    assert "no scheduler given" in run.stderr
    assert "usual here: " in run.stderr
    om("schedule", "--cron", "--systemd", code=2)
    om("schedule", "--cron", "--install", "--remove", code=2)
    om("schedule", "--cron", "--dry-run", code=2)
    om("schedule", "--cron", "--remove", "--at", "03:00", code=2)
    om("schedule", "--cron", "--every", "5m", "--at", "03:00", code=2)
    assert "not a valid time (expected HH:MM)" in om("schedule", "--cron", "--at", "25:00", code=2).stderr
    assert "cannot be part" in om("schedule", "--systemd", "--db", "a\nb", code=2).stderr


def test_variables_that_are_in_the_file_of_keys_are_not_missed(om: Om) -> None:
    """And others that may read that file are warned of."""
    keys = om.home / ".config" / "om" / "env"
    keys.parent.mkdir(parents=True)
    keys.write_text("# mine\nexport OPENAI_API_KEY='x'\n", "utf-8")
    keys.chmod(0o644)
    env = {"OPENAI_API_KEY": "x"}
    assert (
        om("schedule", "--cron", env=env).stderr
        == f"om: warning: {keys} is readable by others; run `chmod 600` on it\n"
    )
    keys.chmod(0o600)
    assert om("schedule", "--cron", env=env).stderr == ""


def test_a_store_that_lies_elsewhere_by_the_environment_is_named(om: Om) -> None:
    """The machine does not start a run in it."""
    env = {"OM_DB": "", "XDG_DATA_HOME": str(om.folder / "data"), "XDG_CONFIG_HOME": str(om.folder / "etc")}
    document = om("schedule", "--systemd", "--json", env=env).document
    assert document["command"][-2:] == ["--db", str(om.folder / "data" / "om" / "memory.db")]
    assert document["keys"] == str(om.folder / "etc" / "om" / "env")
    (om.folder / "etc" / "om").mkdir(parents=True)
    (om.folder / "etc" / "om" / "config.toml").write_text("", "utf-8")
    document = om("schedule", "--systemd", "--json", env=env).document
    assert document["command"][-2:] == ["--config", str(om.folder / "etc" / "om" / "config.toml")]
    assert om("schedule", "--cron", "--json", env={"OM_DB": ""}).document["command"][-1] == "consolidate"


def strange(om: Om) -> list[str]:
    """Flags that name files as nobody would."""
    folder = om.folder / "a b%d $HOME 'q' \"z\" #x;"
    folder.mkdir()
    (folder / "c%.toml").write_text("observe.tokens = 1\n", "utf-8")
    return ["--db", str(folder / "m%n.db"), "--config", str(folder / "c%.toml")]


def dry_run() -> list[str]:
    """Return the command with which `crontab` of this machine checks a table without installing it, or an empty list.

    It is `-n` in Debian and `-T` in cronie, where `-n` names a host. Others have none, and some users may not run it.
    """
    if not shutil.which("crontab"):
        return []
    told = subprocess.run(["crontab", "-h"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    usage = (told.stdout + told.stderr).decode(errors="replace")
    known = {"-n": r"-n\s+\(dry run", "-T": r"-T\s.*test"}
    return next((["crontab", flag] for flag, words in known.items() if re.search(words, usage)), [])


def test_the_real_crontab_takes_the_line(om: Om) -> None:
    if not (trying := dry_run()):
        pytest.skip("there is no crontab here that only looks at a table")
    for every in ([], ["--every", "15m"], ["--every", "12h"]):
        file = om.write("table", FOREIGN + om("schedule", "--cron", *strange_once(om), *every).stdout.encode())
        tried = subprocess.run([*trying, file], capture_output=True, check=False, env=om.environment())
        assert tried.returncode == 0, tried


def strange_once(om: Om) -> list[str]:
    found = list(om.folder.glob("a b*"))
    return ["--db", str(found[0] / "m%n.db"), "--config", str(found[0] / "c%.toml")] if found else strange(om)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
@pytest.mark.parametrize("every", [[], ["--every", "30m"], ["--every", "12h"]], ids=" ".join)
def test_the_real_systemd_takes_the_units(om: Om, every: list[str]) -> None:
    parts = om("schedule", "--systemd", "--json", *strange(om), *every).document["parts"]
    names = [om.write(Path(part["place"]).name, part["text"]) for part in parts]
    for name in names:
        name.chmod(0o644)  # whatever the umask is
    runtime = om.folder / "run"
    runtime.mkdir(mode=0o700)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", "--man=no", *names],
        capture_output=True,
        text=True,
        check=False,
        env=om.environment({"XDG_RUNTIME_DIR": str(runtime)}),
    )
    said = [line for line in done.stderr.splitlines() if "om-" in line]
    assert (done.returncode, said) == (0, []), done.stderr
    (when,) = [line for line in parts[1]["text"].splitlines() if line.startswith("OnCalendar=")]
    subprocess.run(["systemd-analyze", "calendar", when.removeprefix("OnCalendar=")], check=True, capture_output=True)


def test_the_property_list_says_what_is_run(om: Om) -> None:
    """By Python's own reader, and by `plutil` where that is."""
    text = om("schedule", "--launchd", "--at", "4:30", *strange(om)).stdout
    content = plistlib.loads(text.encode())
    assert content["StartCalendarInterval"] == {"Hour": 4, "Minute": 30}
    assert content["ProgramArguments"][-4:] == strange_once(om)
    if plutil := shutil.which("plutil"):
        subprocess.run([plutil, "-lint", om.write("a.plist", text)], check=True)


def as_cron(line: str) -> str:
    """The command of a line, as cron passes it to the shell."""
    return line.split(" ", 5)[5].replace(r"\%", "%")


@pytest.mark.parametrize("kind", ["--cron", "--launchd"])
def test_what_is_printed_does_its_work_in_next_to_no_environment(om: Om, kind: str) -> None:
    """Keys come in by the file of mode 0600, in no argument; what is said ends up in a log that is nobody else's."""
    flags = strange(om)
    text = om("schedule", kind, "--every", "15m", *flags).stdout
    om("observe", "--later", om.write("t.jsonl", tide_story().text()), *flags)
    keys = om.home / ".config" / "om" / "env"
    keys.parent.mkdir(parents=True)
    keys.write_text("OM_OBSERVER_MODEL='scripted/nowhere in sight'\n", "utf-8")
    words = ["/bin/sh", "-c", as_cron(text)] if kind == "--cron" else plistlib.loads(text.encode())["ProgramArguments"]
    env = {"HOME": str(om.home), "PATH": "/usr/bin:/bin"}
    log = om.home / ".local" / "state" / "om" / "tick.log"

    done = subprocess.run(words, env=env, cwd=om.home, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (78, b"", b""), log.read_text()
    assert "nowhere in sight" in log.read_text("utf-8")
    assert (stat.S_IMODE(log.stat().st_mode), stat.S_IMODE(log.parent.stat().st_mode)) == (0o600, 0o700)
    said = log.read_text("utf-8")

    keys.unlink()
    subprocess.run(words, env=env, cwd=om.home, check=True)
    db = {"OM_DB": flags[1]}
    assert om("log", "--json", env=db).document["observations"]
    assert log.read_text("utf-8") == said
    assert rows(om) == []
    assert om("status", "--json", env=db).document["pending"] == 0
    assert pending(om) == 0


def test_a_home_and_an_om_may_be_called_anything(tmp_path: Path) -> None:
    """Spaces, and signs that mean something to cron, systemd or a shell; by their real programs where those are."""
    folder = tmp_path / "a b%n $HOME 'q' %%u"
    folder.mkdir()
    om = installed(folder)
    line = om("schedule", "--cron").stdout
    env = {"HOME": str(om.home), "PATH": "/usr/bin:/bin"}
    for _ in range(2):
        done = subprocess.run(["/bin/sh", "-c", as_cron(line)], env=env, cwd="/", capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    said = (om.home / ".local" / "state" / "om" / "consolidate.log").read_text("utf-8")
    assert said == "consolidated: nothing to do\n" * 2
    parts = om("schedule", "--systemd", "--json").document["parts"]
    if shutil.which("systemd-analyze"):
        names = [str(om.write(Path(part["place"]).name, part["text"])) for part in parts]
        (folder / "run").mkdir(mode=0o700)
        verify = ["systemd-analyze", "--user", "verify", "--man=no", *names]
        told = om.environment({"XDG_RUNTIME_DIR": str(folder / "run")})
        done = subprocess.run(verify, capture_output=True, check=False, env=told)
        assert (done.returncode, b"om-" in done.stderr) == (0, False), done.stderr
    if trying := dry_run():
        subprocess.run([*trying, om.write("table", line)], check=True, env=om.environment())


@pytest.mark.parametrize("kind", ["--cron", "--launchd"])
def test_the_log_of_a_job_stays_small_and_one_that_cannot_be_kept_keeps_no_job_from_running(om: Om, kind: str) -> None:
    """A job that fails every quarter of an hour for years fills no disk; where no log can be written, cron mails it."""
    said = "consolidated: nothing to do\n"
    executable(om.folder / "om", f"#!/bin/sh\nprintf '{said}' >&2\n")
    text = om("schedule", kind).stdout
    words = ["/bin/sh", "-c", as_cron(text)] if kind == "--cron" else plistlib.loads(text.encode())["ProgramArguments"]
    env = {"HOME": str(om.home), "PATH": "/usr/bin:/bin"}
    logs = om.home / ".local" / "state" / "om"
    logs.mkdir(parents=True)
    for size in (999_999, 1_000_000):
        (logs / "consolidate.log").write_bytes(b"x" * size)
        done = subprocess.run(words, env=env, cwd=om.home, capture_output=True, check=True)
        assert (done.stdout, done.stderr) == (b"", b"")
    assert (logs / "consolidate.log").read_text("utf-8") == said
    assert (logs / "consolidate.log.1").stat().st_size == 1_000_000
    (logs / "consolidate.log").unlink()
    (logs / "consolidate.log").mkdir()
    for in_the_way in (False, True):
        if in_the_way:
            shutil.rmtree(logs)
            logs.write_text("in the way", "utf-8")
        done = subprocess.run(words, env=env, cwd=om.home, capture_output=True, check=True)
        assert said.encode() in done.stderr


# What is installed


def test_a_line_of_the_crontab_is_installed_once_and_removed_again(om: Om, machine: dict[str, str]) -> None:
    """And the lines of others stay as they are, to the byte."""
    spool = om.folder / "spool"
    for foreign in (None, FOREIGN):
        if foreign is not None:
            spool.write_bytes(foreign)
        assert om("schedule", "--cron", "--install", "--dry-run", env=machine).stdout == "create   crontab\n"
        assert (spool.read_bytes() if spool.exists() else None) == foreign
        assert om("schedule", "--cron", "--install", env=machine).stdout == "create   crontab\n"
        once = spool.read_bytes()
        line = om("schedule", "--cron", env=machine).stdout.encode()
        assert once == (foreign or b"") + line
        assert om("schedule", "--cron", "--install", env=machine).stdout == "keep     crontab\n"
        run = om("schedule", "--cron", "--install", "--at", "4:15", "--json", env=machine)
        assert run.document["changes"] == [{"place": "crontab", "step": "replace"}]
        assert spool.read_bytes() == once.replace(b"0 3 * * *", b"15 4 * * *")
        om("schedule", "--cron", "--install", "--every", "15m", env=machine)
        assert spool.read_bytes().count(b"# om:") == 2
        assert om("schedule", "--cron", "--remove", "--dry-run", env=machine).stdout == "remove   crontab\n" * 2
        assert om("schedule", "--cron", "--remove", env=machine).stdout == "remove   crontab\n" * 2
        assert spool.read_bytes() == (foreign or b"")
        run = om("schedule", "--cron", "--remove", env=machine)
        assert (run.stdout, run.stderr) == ("", "om: nothing to remove\n")
        spool.unlink()


def test_a_crontab_that_cannot_be_read_is_never_written(om: Om, machine: dict[str, str]) -> None:
    """What is not plainly none would be lost: 74. One line says so."""
    (om.folder / "spool").write_bytes(FOREIGN)
    for flag in ("--install", "--remove"):
        run = om("schedule", "--cron", flag, env={**machine, "REFUSES": "1"}, code=74)
        assert run.stderr == (
            "om: error: the crontab cannot be read: You (ada) are not allowed to use this program (crontab)\n"
        )
    assert (om.folder / "spool.log").read_text("utf-8") == "-l\n-l\n"
    assert (om.folder / "spool").read_bytes() == FOREIGN


def test_a_machine_without_cron_is_said_to_be_one(om: Om) -> None:
    """73, as where a file cannot be made."""
    nothing = om.folder / "nothing"
    nothing.mkdir()
    run = om("schedule", "--cron", "--install", env={"PATH": str(nothing)}, code=73)
    assert run.stderr == ("om: error: `crontab` was not found\nhint: install cron, or use --systemd or --launchd\n")
    om("schedule", "--cron", env={"PATH": str(nothing)})


@pytest.mark.parametrize(
    ("kind", "folder", "names"),
    [
        ("--systemd", ".config/systemd/user", ["om-consolidate.service", "om-consolidate.timer"]),
        ("--launchd", "Library/LaunchAgents", ["om.consolidate.plist"]),
    ],
)
def test_files_are_installed_once_and_removed_again(
    om: Om, machine: dict[str, str], kind: str, folder: str, names: list[str]
) -> None:
    """And those of others stay as they are."""
    other = om.home / folder / "om-other.service"
    other.parent.mkdir(parents=True)
    other.write_bytes(FOREIGN)
    before = files(om)
    paths = [str(om.home / folder / name) for name in names]

    def steps(*arguments: str) -> list[tuple[str, str]]:
        changes = om("schedule", kind, *arguments, "--json", env=machine).document["changes"]
        return [(change["step"], change["place"]) for change in changes]

    assert steps("--install", "--dry-run") == [("create", path) for path in paths]
    assert (files(om), told(om)) == (before, [])
    assert steps("--install") == [("create", path) for path in paths]
    once = files(om)
    assert set(once) - set(before) == {f"{folder}/{name}" for name in names}
    parts = om("schedule", kind, "--json", env=machine).document["parts"]
    assert [once[f"{folder}/{name}"].decode() for name in names] == [part["text"] for part in parts]
    assert steps("--install") == [("keep", path) for path in paths]
    assert files(om) == once
    assert ("replace", paths[-1]) in steps("--install", "--at", "5:00")
    assert steps("--remove", "--dry-run") == [("remove", path) for path in paths]
    assert steps("--remove") == [("remove", path) for path in paths]
    assert files(om) == before
    said = told(om)
    assert steps("--remove") == []
    assert (files(om), told(om)) == (before, said)


def test_systemd_is_told_of_it(om: Om, machine: dict[str, str]) -> None:
    """And the `om` that it starts is this one."""
    executable(om.folder / "om", PROGRAM)
    om("schedule", "--systemd", "--install", env=machine)
    started = ["--user daemon-reload", "--user enable --now om-consolidate.timer"]
    assert told(om) == started
    om("schedule", "--systemd", "--install", "--at", "5:00", env=machine)
    assert told(om)[2:] == [*started, "--user restart om-consolidate.timer"]
    om("schedule", "--systemd", "--remove", env=machine)
    assert told(om)[5:] == ["--user disable --now om-consolidate.timer", "--user daemon-reload"]


def test_where_systemd_does_not_answer_the_rest_is_left_to_be_typed(om: Om, machine: dict[str, str]) -> None:
    """The units are there, and it is no failure; the link of a timer that nobody takes away goes with it."""
    env = {**machine, "REFUSES": "1"}
    run = om("schedule", "--systemd", "--install", env=env)
    assert run.stderr == (
        "om: warning: Failed to connect to bus: No medium found; run yourself: "
        "systemctl --user daemon-reload && systemctl --user enable --now om-consolidate.timer\n"
    )
    units = om.home / ".config" / "systemd" / "user"
    wants = units / "timers.target.wants"
    wants.mkdir()
    (wants / "om-consolidate.timer").symlink_to(units / "om-consolidate.timer")
    (wants / "other.timer").symlink_to(units / "other.timer")
    run = om("schedule", "--systemd", "--remove", env=env)
    assert "systemctl --user stop om-consolidate.timer && systemctl --user daemon-reload" in run.stderr
    assert [path.name for path in wants.iterdir()] == ["other.timer"]
    assert files(om) == {}


def test_launchd_is_told_of_it(om: Om, machine: dict[str, str]) -> None:
    om("schedule", "--launchd", "--install", env=machine)
    label, plist = f"gui/{os.getuid()}/om.consolidate", om.home / "Library/LaunchAgents/om.consolidate.plist"
    assert told(om) == [f"bootout {label}", f"bootstrap gui/{os.getuid()} {plist}"]
    om("schedule", "--launchd", "--remove", env=machine)
    assert told(om)[2:] == [f"bootout {label}"]
    run = om("schedule", "--launchd", "--install", env={**machine, "REFUSES": "1"})
    assert shlex.join(["launchctl", "bootstrap", f"gui/{os.getuid()}", str(plist)]) in run.stderr


def test_a_file_of_somebody_else_is_neither_replaced_nor_removed(om: Om, machine: dict[str, str]) -> None:
    """Also where only the second of two is theirs: nothing is written then."""
    units = om.home / ".config" / "systemd" / "user"
    units.mkdir(parents=True)
    (units / "om-consolidate.timer").write_bytes(FOREIGN)
    before = files(om)
    run = om("schedule", "--systemd", "--install", env=machine, code=73)
    assert "already exists and was not created by om" in run.stderr
    om("schedule", "--systemd", "--remove", env=machine)
    assert (files(om), told(om)) == (before, [])


def test_units_that_are_links_stay_links(om: Om, machine: dict[str, str]) -> None:
    """Those who keep such files elsewhere find them there."""
    om("schedule", "--systemd", "--install", env=machine)
    timer = om.home / ".config" / "systemd" / "user" / "om-consolidate.timer"
    elsewhere = om.folder / "kept.timer"
    timer.rename(elsewhere)
    timer.symlink_to(elsewhere)
    om("schedule", "--systemd", "--install", "--at", "5:00", env=machine)
    assert timer.is_symlink()
    assert "05:00:00" in elsewhere.read_text("utf-8")


def test_a_folder_that_cannot_be_made_is_an_error_of_one_line(om: Om, machine: dict[str, str]) -> None:
    (om.home / ".config").write_text("", "utf-8")
    run = om("schedule", "--systemd", "--install", env=machine, code=74)
    assert run.stderr.count("\n") == 1


def test_a_disabled_om_installs_nothing(om: Om, machine: dict[str, str]) -> None:
    run = om("schedule", "--systemd", "--install", env={**machine, "OM_DISABLED": "1"})
    assert "disabled by OM_DISABLED" in run.stderr
    assert files(om) == {}


def test_an_om_that_others_cannot_start_is_not_installed(om: Om, machine: dict[str, str]) -> None:
    """A schedule that fails every night without a word would be worse than none: 78."""
    executable(om.folder / "om", '#!/bin/sh\nset -u\n: "$SPOOL"\n')
    done = om("schedule", "--systemd", "--install", env=machine, code=78)
    assert done.stdout == ""
    assert f"{om.folder / 'om'} cannot be started by others: " in done.stderr
    assert "SPOOL" in done.stderr
    assert files(om) == {}
