"""`om doctor`: what it finds wrong, what it mends, and `om status --line`."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from omcli.clients import CLIENTS
from omcli.clients.entries import hook_entries
from omcli.clients.log import RETIRED, HookRun, append
from omcli.doctor.store import file_system
from omcli.memory.ports import Lane
from tests.conftest import Om
from tests.e2e.contents import connected, make_newer, stored
from tests.e2e.opencode import database, put
from tests.e2e.scripts import always
from tests.e2e.terminals import on_terminal
from tests.e2e.transcripts import Talk, tide_story

STATE = ".local/state/om"
ROOT = Path(__file__).parents[2]
STORIES = ROOT / "tests" / "stories"
Found = dict[str, list[tuple[str, str]]]


@pytest.fixture
def om(tmp_path: Path) -> Om:
    """The `om` command on a machine without schedulers and other programs of this name."""
    made = Om(tmp_path)
    (tmp_path / "bin").mkdir()
    made._kept["PATH"] = str(tmp_path / "bin")
    return made


@pytest.fixture
def told(om: Om) -> Om:
    om("observe", "-q", stdin=tide_story().text())
    return om


def doctor(om: Om, *options: str, code: int | None = 0, env: dict[str, str] | None = None) -> Found:
    """The results of all checks by name, each with its text and hint."""
    document = om("doctor", "--json", *options, code=code, env=env).document
    assert all(check.keys() <= {"name", "state", "text", "hint"} for check in document["checks"])
    assert document["failed"] == sum(check["state"] == "fail" for check in document["checks"])
    found: Found = {}
    for check in document["checks"]:
        found.setdefault(check["name"], []).append((check["state"], f"{check['text']} | {check.get('hint', '')}"))
    return found


def states(found: Found) -> set[str]:
    return {state for checks in found.values() for state, _ in checks}


def only(found: Found, name: str) -> tuple[str, str]:
    [check] = found[name]
    return check


def program(om: Om, text: str, name: str = "om") -> Path:
    """A program in the one folder of PATH."""
    path = om.folder / "bin" / name
    path.write_text(text)
    path.chmod(0o755)
    return path


# ---- as a whole


def test_on_a_fresh_home_nothing_is_wrong(om: Om) -> None:
    found = doctor(om)
    assert states(found) <= {"pass", "skip"}
    assert only(found, "store")[0] == "skip"
    assert not om.has_store


def test_each_check_is_a_line_below_its_heading(told: Om) -> None:
    run = told("doctor")
    assert run.stdout.startswith("Store\npass  store        ")
    assert "\n\nSettings\npass  settings     preset default" in run.stdout
    assert "\n                   `om schedule` runs `om consolidate` daily\n" in run.stdout
    assert run.stderr.endswith(" 0 failed, 5 skipped\n")
    shown = on_terminal(told, "doctor", "--color", "never", columns=60)
    assert "Store ──────" in shown
    assert "pass  observer     rules (no model is chosen)" in shown
    assert max(map(len, shown.splitlines())) <= 60


@pytest.mark.file_store("damage")
def test_a_check_that_cannot_be_made_stops_no_other(om: Om) -> None:
    om.db.parent.mkdir()
    om.db.write_bytes(b"no store " * 1_000)
    found = doctor(om, code=1)
    assert only(found, "store") == ("fail", f"{om.db} is not a store | name another file with --db")
    assert only(found, "settings")[0] == only(found, "counter")[0] == "pass"
    assert "integrity" not in found


# ---- settings


@pytest.mark.parametrize(
    ("env", "state", "code"),
    [
        ({"OM_DISABLED": "1"}, "skip", 0),
        ({"OM_OBSERVE_TOKENS": "0"}, "fail", 1),
        ({"OM_REFLECT_TOKENS": "0"}, "fail", 1),
        ({"OM_OBSERVE_TOKENS": "-1"}, "fail", 1),
        ({"OM_CONTEXT_TAIL": "5000", "OM_OBSERVE_TOKENS": "5000"}, "warn", 0),
        ({"OM_CONTEXT_TAIL": "5001", "OM_OBSERVE_TOKENS": "5000"}, "pass", 0),
        ({}, "pass", 0),
        ({"OM_PRESET": "lango"}, "pass", 0),
        ({"OM_PRESET": "coding"}, "pass", 0),
        ({"OM_PRESET": "mastra", "OM_OBSERVER_PROVIDER": "rules"}, "pass", 0),
    ],
)
def test_thresholds_are_sane(om: Om, env: dict[str, str], state: str, code: int) -> None:
    """T72, T71: disabled is skipped, a threshold of nothing fails, a tail within the threshold is a warning."""
    assert only(doctor(om, code=code, env=env), "settings")[0] == state


def test_what_is_wrong_in_files_fails(om: Om) -> None:
    """T71, D11."""
    config = om.home / ".config" / "om" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[observe]\ntokens = "many"\ntoken = 3\n')
    failures = doctor(om, code=1)["settings"]
    assert [state for state, _ in failures] == ["fail", "fail"]
    assert any("did you mean `observe.tokens`?" in text for _, text in failures)
    config.write_text("= 3")
    assert "not valid TOML" in only(doctor(om, code=1), "settings")[1]


def test_variables_of_other_programs_are_listed(om: Om) -> None:
    """D10."""
    found = doctor(om, env={"OM_LLM_MODEL": "x", "OM_WAIT": "3"})
    assert only(found, "variables") == (
        "skip",
        "unknown to om and ignored: OM_LLM_MODEL | om-config(5) lists all settings",
    )
    assert "variables" not in doctor(om)


# ---- the store


def test_a_store_of_a_newer_om_fails_and_stays_as_it_is(told: Om) -> None:
    make_newer(told.place)
    before = stored(told.place)
    found = doctor(told, "--fix", code=1)
    state, text = only(found, "store")
    assert state == "fail"
    assert "has schema version 9999" in text
    assert "upgrade om" in text
    assert stored(told.place) == before
    assert told("status", "--line").stdout == "memory unavailable\n"


@pytest.mark.file_store("damage")
def test_damage_of_the_file_is_reported_and_no_traceback_printed(told: Om) -> None:
    with connected(told.place) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'observations'").fetchone()
    with told.db.open("r+b") as stream:
        stream.seek(size * (page - 1))
        stream.write(b"\xff" * size)
    found = doctor(told, code=1)
    assert only(found, "integrity")[0] == "fail"
    assert "`om restore` puts a backup" in only(found, "integrity")[1]
    assert only(found, "python")[0] == "pass"


def test_a_store_without_tables_is_reported(told: Om) -> None:
    with connected(told.place) as connection:
        for table in ("sessions", "leases", "bookmarks", "calls"):
            connection.execute(f"DROP TABLE {table}")
    found = doctor(told, code=1)
    assert "fail" in states(found)
    assert "no such table" in str(found["store"])
    assert told("status", "--line").stdout == "memory unavailable\n"


def test_a_locked_store_is_reported(told: Om) -> None:
    with connected(told.place) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("CREATE TABLE other (a)")
        assert "another process" in only(doctor(told, "--wait", "0", code=1), "store")[1]
        assert told("status", "--line").stdout == "memory unavailable\n"


@pytest.mark.file_store("damage")
def test_what_is_no_file_cannot_be_the_store(om: Om) -> None:
    om.db.mkdir(parents=True)
    assert only(doctor(om, code=1), "store")[0] == "fail"


@pytest.mark.parametrize("options", [(), ("--thorough",)])
@pytest.mark.file_store("damage")
def test_a_damaged_index_of_words_is_rebuilt(told: Om, options: tuple[str, ...]) -> None:
    with connected(told.place) as connection:
        connection.execute("DELETE FROM message_words_idx")
    damaged = ("fail", "the index of words is damaged | `om doctor --fix` rebuilds it")
    assert only(doctor(told, *options, code=1), "index") == damaged
    assert only(doctor(told, "--fix", *options), "index") == ("pass", "rebuilt (the index of words is damaged) | ")
    assert only(doctor(told, *options), "index")[0] == "pass"


@pytest.mark.file_store("its permissions")
def test_files_that_others_can_read_are_made_private(told: Om) -> None:
    told.db.chmod(0o644)
    log = told.home / STATE / "hooks.log"
    log.parent.mkdir(parents=True)
    log.touch()
    log.chmod(0o640)
    found = doctor(told)
    assert [state for state, _ in found["permissions"]] == ["warn", "warn"]
    assert f"others may read {told.db} (mode 0644)" in found["permissions"][0][1]
    mended = doctor(told, "--fix")["permissions"]
    assert [text.partition(" (")[0] for _, text in mended] == ["made private", "made private"]
    assert told.db.stat().st_mode & 0o777 == 0o600
    assert log.stat().st_mode & 0o777 == 0o600
    assert only(doctor(told), "permissions")[0] == "pass"


@pytest.mark.file_store("its permissions")
def test_what_links_lead_to_is_never_changed(told: Om) -> None:
    """It need not be of om: a file of the user that others should read, or a shared folder."""
    foreign, folder, state = told.write("public.txt", "x"), told.folder / "shared", told.home / STATE
    folder.mkdir()
    state.mkdir(parents=True, mode=0o700)
    (state / "link").symlink_to(foreign)
    (state / "folder").symlink_to(folder)
    (state / "gone").symlink_to(told.folder / "gone")
    os.link(foreign, state / "name")
    place = told.db.rename(told.db.with_name("elsewhere.db"))
    told.db.symlink_to(place)
    for path, mode in ((foreign, 0o644), (folder, 0o755), (place, 0o640)):
        path.chmod(mode)
    for options in ((), ("--fix",)):
        store, name = doctor(told, *options)["permissions"]
        assert store[0] == name[0] == "warn"
        assert f"{told.db} (mode 0640) | it is a link; " in store[1]
        assert "/name (mode 0644) | it has other names" in name[1]
    assert [path.stat().st_mode & 0o777 for path in (foreign, folder, place)] == [0o644, 0o755, 0o640]


def test_the_folder_of_the_usual_store_is_private_too(om: Om) -> None:
    usual = {"OM_DB": ""}
    om("note", "Boats leave at six.", env=usual)
    folder = om.home / ".local/share/om"
    folder.chmod(0o755)
    assert only(doctor(om, env=usual), "permissions")[0] == "warn"
    assert only(doctor(om, "--fix", env=usual), "permissions")[0] == "pass"
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.file_store("its permissions")
def test_nothing_is_mended_while_om_is_disabled(told: Om) -> None:
    told.db.chmod(0o644)
    assert only(doctor(told, "--fix", env={"OM_DISABLED": "1"}), "permissions")[0] == "warn"
    assert told.db.stat().st_mode & 0o777 == 0o644


@pytest.mark.file_store("its log")
def test_a_long_write_ahead_log_is_shortened(told: Om) -> None:
    log = told.db.with_name(f"{told.db.name}-wal")
    log.touch(0o600)
    os.truncate(log, 100_000_000)
    assert only(doctor(told), "log")[0] == "warn"
    assert only(doctor(told, "--fix"), "log")[0] == "pass"
    assert not log.exists() or log.stat().st_size == 0


def test_an_old_store_without_backups_is_a_warning(told: Om) -> None:
    assert only(doctor(told), "backups")[0] == "skip"
    later = ("--now", "2030-01-01T00:00:00Z")
    assert only(doctor(told, *later), "backups")[0] == "warn"
    told("consolidate", "-q", "--now", "2030-01-01T00:00:00Z")
    assert only(doctor(told, *later), "backups")[0] == "pass"
    assert only(doctor(told, "--now", "2030-02-01T00:00:00Z"), "backups")[0] == "warn"
    assert only(doctor(told, env={"OM_CONSOLIDATE_BACKUPS": "0"}), "backups")[0] == "warn"


@pytest.mark.parametrize(
    ("path", "type_"),
    [
        ("/home/ada/.local", "ext4"),
        ("/home/ada/far/x", "nfs4"),
        ("/home/ada/far", "nfs4"),
        ("/home/ada/farther", "ext4"),
        ("/mnt/a b/c", "cifs"),
        ("/", "overlay"),
        ("/tmp", "overlay"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(path: str, type_: str) -> None:
    mounts = (
        "overlay / overlay rw 0 0\n/dev/sda /home ext4 rw 0 0\nserver:/x /home/ada/far nfs4 rw 0 0\n"
        "//server/y /mnt/a\\040b cifs rw 0 0\n"
    )
    assert file_system(path, mounts) == type_


# ---- work


def test_messages_that_have_waited_for_days_are_a_warning(om: Om) -> None:
    om("observe", "-q", "--later", "--now", "2026-02-10T10:00:00Z", stdin=tide_story().text())
    assert only(doctor(om, "--now", "2026-02-10T20:00:00Z"), "pending")[0] == "pass"
    state, text = only(doctor(om, "--now", "2026-02-14T10:00:00Z"), "pending")
    assert state == "warn"
    assert "8 messages" in text
    assert "since 2026-02-10 10:00" in text
    om("tick", "-q")
    assert only(doctor(om), "pending") == ("pass", "every message is observed | ")


def test_a_failure_is_a_warning_and_fails_after_a_day(om: Om) -> None:
    """F97."""
    model = always(om, {"error": "refused"}).model
    now = ("--now", "2026-02-10T10:00:00Z")
    om("observe", "-q", "--model", model, *now, stdin=tide_story().text(), code=None)
    assert only(doctor(om, "--now", "2026-02-10T11:00:00Z"), "errors")[0] == "warn"
    assert only(doctor(om, "--now", "2026-02-12T11:00:00Z", code=1), "errors")[0] == "fail"


def test_leases_of_processes_that_have_ended_are_released(told: Om) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    far = "2999-01-01T00:00:00.000Z"
    with told.open() as store:
        for lane, owner in ((Lane.OBSERVE, f"{os.uname().nodename}:{ended.pid}:1"), (Lane.REFLECT, "elsewhere:1:1")):
            store.leases.claim("tide", lane, owner=owner, now="2026-02-10T00:00:00.000Z", expires_at=far)
    state, text = only(doctor(told), "leases")
    assert state == "warn"
    assert f"process {ended.pid} at the observe lane of tide has ended" in text
    assert only(doctor(told, "--fix"), "leases")[1].startswith("released (")
    assert only(doctor(told), "leases") == ("pass", "process 1 on elsewhere at the reflect lane of tide | ")


def test_a_worker_that_was_killed_is_a_warning(told: Om) -> None:
    log = told.home / STATE / "background.log"
    log.parent.mkdir(parents=True, mode=0o700)
    line = {"at": "2026-02-10T10:00:00.000Z", "worker": f"{os.uname().nodename}:4194304:1", "store": str(told.db)}
    log.write_text(f"{json.dumps(line)}\n")
    assert "was killed" in only(doctor(told), "background")[1]
    log.write_text(f"{json.dumps({**line, 'ended': 69, 'error': 'no reply'})}\n")
    assert only(doctor(told), "background")[0] == "warn"
    log.write_text(f"{json.dumps({**line, 'ended': 0})}\n")
    assert only(doctor(told), "background")[0] == "pass"


def test_a_schedule_that_fails_or_no_longer_runs_is_a_warning(told: Om) -> None:
    table = told.write("table", "0 3 * * * /usr/bin/om consolidate # om:consolidate\n")
    program(told, f"#!/bin/sh\nexec /bin/cat {table}\n", "crontab")
    assert "has not run yet" in only(doctor(told), "schedule")[1]
    log = told.home / STATE / "consolidate.log"
    log.parent.mkdir(parents=True, mode=0o700)
    log.write_text("12 files\nom: error: no space left\nhint: free some\n")
    assert only(doctor(told), "schedule")[0] == "warn"
    assert "which failed: no space left" in only(doctor(told), "schedule")[1]
    log.write_text("om: error: no space left\n12 files\n")
    assert only(doctor(told), "schedule")[0] == "pass"
    os.utime(log, (0, 0))
    assert "which is long ago" in only(doctor(told), "schedule")[1]
    log.chmod(0o600)
    table.write_text("0 3 * * * /bin/backup\n")
    assert only(doctor(told), "schedule")[0] == "skip"


def test_transcripts_that_nobody_takes_in_are_a_warning(om: Om) -> None:
    file = om.home / ".claude" / "projects" / "-home-ada" / "5d0c6e0a-0000-4000-8000-000000000001.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(tide_story().text())
    assert only(doctor(om), "transcripts")[0] == "pass"
    os.utime(file, (0, 0))
    state, text = only(doctor(om), "transcripts")
    assert state == "warn"
    assert "1 of 1 file (" in text
    om("consolidate", "-q")
    assert only(doctor(om), "transcripts") == ("pass", "1 file, all taken in | ")


def test_a_file_that_was_read_at_once_is_taken_in(om: Om) -> None:
    """As hooks do: it was written so recently then that it could change again without changing its time."""
    file = om.home / ".claude" / "projects" / "-home-ada" / "5d0c6e0a-0000-4000-8000-000000000001.jsonl"
    file.parent.mkdir(parents=True)
    *lines, last = tide_story().text().splitlines(keepends=True)
    file.write_text("".join(lines))
    om("observe", "-q", file)
    later = ("--now", "2099-01-01T00:00:00Z")
    assert only(doctor(om, *later), "transcripts") == ("pass", "1 file, all taken in | ")
    with connected(om.place) as connection:
        connection.execute("UPDATE bookmarks SET terms = replace(terms, '[\"', '[\"0.0.')")
    assert only(doctor(om, *later), "transcripts")[0] == "pass", "by another version"
    file.write_text("".join([*lines, last]))
    assert only(doctor(om, *later), "transcripts")[0] == "warn"
    om("observe", "-q", file)
    assert only(doctor(om, *later), "transcripts")[0] == "pass"


def test_transcripts_of_a_project_that_turns_memory_off_are_not_missed(om: Om) -> None:
    file = om.home / ".claude" / "projects" / "-quay" / "5d0c6e0a-0000-4000-8000-000000000001.jsonl"
    file.parent.mkdir(parents=True)
    quay = om.folder / "quay"
    quay.mkdir()
    (quay / ".om.toml").write_text("enabled = false\n")
    file.write_text(Talk(session="5d0c6e0a-0000-4000-8000-000000000001", cwd=str(quay)).user("Paint it.").text())
    later = ("--now", "2099-01-01T00:00:00Z")
    assert only(doctor(om, *later), "transcripts")[0] == "pass"
    (quay / ".om.toml").unlink()
    assert only(doctor(om, *later), "transcripts")[0] == "warn"


def test_a_database_that_was_read_at_once_is_taken_in(om: Om) -> None:
    path = om.home / ".local/share/opencode/opencode.db"
    story = json.loads((STORIES / "opencode_rooms.json").read_text())
    with database(path) as connection:
        put(connection, {**story, "messages": story["messages"][:3]})
    om("observe", "-q", path)
    later = ("--now", "2099-01-01T00:00:00Z")
    assert only(doctor(om, *later), "transcripts") == ("pass", "1 file, all taken in | ")
    story["info"]["time"]["updated"] += 1
    with database(path) as connection:
        put(connection, story)
    assert only(doctor(om, *later), "transcripts")[0] == "warn"


def test_records_that_were_not_understood_are_counted(om: Om) -> None:
    file = om.write("a.jsonl", f'{tide_story().text()}\n{{"type": "tide-gauge", "sessionId": "a", "uuid": "b"}}\n')
    om("observe", "-q", file)
    state, text = only(doctor(om), "records")
    assert state == "pass"
    assert "1 record of unknown types skipped: tide-gauge (1)" in text
    om("observe", "-q", om.write("b.jsonl", f"{tide_story().text()}\n{{broken\n"))
    assert [state for state, _ in doctor(om)["records"]] == ["warn", "pass"]


# ---- models


def test_the_model_of_a_run_is_named_with_its_key_and_price(om: Om) -> None:
    env = {"OM_OBSERVER_MODEL": "anthropic/claude-haiku-4-5"}
    state, text = only(doctor(om, env=env, code=1), "observer")
    assert state == "fail"
    assert "anthropic needs a key" in text
    assert (
        only(doctor(om, env={**env, "OM_OBSERVER_FALLBACK": "rules", "OM_REFLECTOR_FALLBACK": "rules"}), "observer")[0]
        == "warn"
    )
    run = om("doctor", "--json", env={**env, "ANTHROPIC_API_KEY": "sk-ant-tide-7"})
    assert "tide-7" not in run.stdout + run.stderr
    [observer] = [check for check in run.document["checks"] if check["name"] == "observer"]
    assert observer["text"] == (
        "anthropic/claude-haiku-4-5 (`observer.model` from OM_OBSERVER_MODEL), key in ANTHROPIC_API_KEY,"
        " $1.00 in and $5.00 out per million tokens"
    )


def test_models_are_asked_only_with_ping(om: Om) -> None:
    script = always(om, {"text": "{}"})
    env = {"OM_OBSERVER_MODEL": script.model}
    doctor(om, env=env)
    assert not script.asked
    found = doctor(om, "--ping", env=env)
    assert "replied in" in found["observer"][1][1]
    assert len(script.asked) == 2
    assert om("usage", "--json").document["total"]["calls"] == 2
    refusing = {"OM_OBSERVER_MODEL": always(om, {"error": "refused"}, name="refusing.json").model}
    assert [state for state, _ in doctor(om, "--ping", env=refusing, code=1)["observer"]] == ["pass", "fail"]


def test_vectors_and_counters_that_cannot_be_used_are_told(om: Om) -> None:
    assert only(doctor(om, env={"OM_EMBEDDINGS_PROVIDER": "openai"}, code=1), "embeddings")[0] == "fail"
    assert only(doctor(om, env={"OM_COUNTER": "chars-9"}, code=1), "counter")[0] == "fail"
    nowhere = {"TIKTOKEN_CACHE_DIR": str(om.home), "DATA_GYM_CACHE_DIR": "", "TMPDIR": str(om.home)}
    assert only(doctor(om, env={"OM_COUNTER": "o200k", **nowhere}), "counter")[0] == "warn"


def test_limits_are_told_with_what_is_used_of_them(told: Om) -> None:
    script = always(told, {"text": "{}", "usage": {"input": 90, "output": 1}})
    doctor(told, "--ping", env={"OM_OBSERVER_MODEL": script.model})
    used = told("usage", "--json").document["total"]["input_tokens"]
    assert only(doctor(told, env={"OM_LIMITS_DAY_TOKENS": str(used * 10)}), "limits")[0] == "pass"
    assert only(doctor(told, env={"OM_LIMITS_DAY_TOKENS": "1"}), "limits")[0] == "warn"
    assert only(doctor(told, env={"OM_LIMITS_DAY_COST": "0"}), "limits")[0] == "warn"


# ---- the program


@pytest.mark.parametrize(
    ("script", "state", "text"),
    [
        (f"#!{sys.executable}\nfrom omcli.__main__ import main\n", "pass", "`om` is "),
        ("#!/opt/py/bin/python\nfrom omcli.__main__ import main\n", "warn", "another installation of om"),
        (
            "#!/opt/py/bin/python\nfrom observational_memory.cli import cli\n",
            "warn",
            "the retired observational-memory",
        ),
        ("#!/bin/sh\nexit 3\n", "warn", "another program"),
    ],
)
def test_another_om_on_the_path_is_told(om: Om, script: str, state: str, text: str) -> None:
    """F96: it is not run."""
    program(om, script)
    found = only(doctor(om), "path")
    assert found[0] == state
    assert text in found[1]


def test_an_old_sqlite_wants_backups(told: Om) -> None:
    state, text = only(doctor(told, "--now", "2030-01-01T00:00:00Z"), "sqlite")
    is_affected = sqlite3.sqlite_version_info < (3, 51, 3)
    assert state == ("warn" if is_affected else "pass")
    assert sqlite3.sqlite_version in text


# ---- hooks


def hooked(om: Om, client: str, *words: str) -> Path:
    """A client whose settings have a hook of om."""
    place = om.home / {"claude-code": ".claude/settings.json", "gemini": ".gemini/settings.json"}.get(
        client, f".{client}/hooks.json"
    )
    place.parent.mkdir(parents=True, exist_ok=True)
    command = shlex.join([*(words or (sys.executable, "-m", "omcli")), "hook", client])
    place.write_text(json.dumps({"model": "x", "hooks": hook_entries(client, command)}))
    return place


def own(om: Om, text: str) -> str:
    """A program on PATH that is the `om` that runs."""
    om.argv0 = str(program(om, text))
    return om.argv0


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "cursor"])
def test_an_installed_hook_is_fired_and_leaves_nothing(told: Om, client: str) -> None:
    """S0.35: with memory for every project, so that there is an answer to look at."""
    hooked(told, client)
    before = stored(told.place)
    state, text = only(doctor(told, env={"PYTHONPATH": str(ROOT), "OM_SCOPE": "global"}), client)
    assert state == ("warn" if client == "codex" else "pass"), text
    assert " ms; the client has not run them yet" in text
    assert not (told.home / STATE).exists()
    assert stored(told.place) == before


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo 'no such option' >&2; exit 2", "it ended with 2: no such option"),
        ("echo hello", "its answer is not JSON"),
        ('echo \'{"context": "x"}\'', "its answer has another form than the client wants"),
    ],
)
def test_a_hook_that_answers_something_else_fails(om: Om, script: str, text: str) -> None:
    hooked(om, "claude-code", own(om, f"#!/bin/sh\n{script}\n"))
    state, told = only(doctor(om, code=1), "claude-code")
    assert state == "fail"
    assert text in told
    assert "`om install claude-code`" in told


@pytest.mark.file_store("damage")
def test_what_a_hook_would_only_log_is_told(om: Om) -> None:
    hooked(om, "claude-code")
    om.db.parent.mkdir()
    om.db.write_bytes(b"no store " * 1_000)
    found = only(doctor(om, code=1, env={"PYTHONPATH": str(ROOT)}), "claude-code")
    assert found[0] == "fail"
    assert "is not a store" in found[1]


def test_a_hook_whose_program_is_gone_fails(om: Om) -> None:
    hooked(om, "cursor", str(om.folder / "gone" / "om"))
    assert "which does not exist" in only(doctor(om, code=1), "cursor")[1]
    path = program(om, "#!/bin/sh\n")
    path.chmod(0o644)
    hooked(om, "cursor", str(path))
    assert "which cannot be executed" in only(doctor(om, code=1), "cursor")[1]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".claude/settings.local.json", {"Stop": [{"hooks": [{"command": "DIR/om hook claude-code"}]}]}),
        (".codex/hooks.json", {"Stop": [{"hooks": [{"command": "DIR/python -m omcli hook codex"}]}]}),
        (".codex/hooks.json", {"Stop": [{"hooks": [{"command": "DIR/om", "args": ["hook", "codex"]}]}]}),
        (".gemini/settings.json", {"AfterAgent": [{"hooks": [{"command": "DIR/om hook gemini"}]}]}),
        (".cursor/hooks.json", {"stop": [{"command": "DIR/om hook cursor"}]}),
        (".pi/extensions/om.ts", 'const OM: string = "DIR/om";'),
        (".opencode/plugins/om.js", 'const OM = "DIR/om";'),
    ],
)
@pytest.mark.parametrize("script", ["#!/bin/sh\n: >MARK\n", f"#!{sys.executable}\nopen('MARK', 'w')\n"])
def test_programs_that_files_of_a_project_name_are_never_run(om: Om, file: str, text: object, script: str) -> None:
    """Anybody can write them into a repository, and whoever clones it may run `om doctor` there."""
    project, mark = om.folder / "ferry", om.folder / "mark"
    (project / file).parent.mkdir(parents=True)
    whole = f"// Written by `om install`\n{text}\n" if isinstance(text, str) else json.dumps({"hooks": text})
    (project / file).write_text(whole.replace("DIR", str(project)))
    for name in ("om", "python"):
        (project / name).write_text(script.replace("MARK", str(mark)))
        (project / name).chmod(0o755)
    found = json.loads(om("doctor", "--json", cwd=project).stdout)["checks"]
    [told] = [check for check in found if check["name"] in CLIENTS]
    assert told["state"] == "warn"
    assert f"run {project}/" in told["text"]
    assert ", not this om; " in told["text"]
    assert told["hint"] == f"`om install {told['name']} --project` writes it again"
    assert not mark.exists()


def test_settings_of_a_project_that_cannot_be_read_hide_no_others(om: Om) -> None:
    hooked(om, "gemini", own(om, "#!/bin/sh\n"))
    place = om.folder / ".gemini/settings.json"
    place.parent.mkdir()
    place.write_text("{")
    (state, _), (other, text) = doctor(om)["gemini"]
    assert (state, other) == ("pass", "warn")
    assert f"{place}: line 1, column 2: not valid JSON" in text


def test_a_hook_is_given_its_call_in_a_file(om: Om) -> None:
    """Writing into a pipe that nobody reads would kill `om doctor` with SIGPIPE."""
    hooked(om, "gemini", own(om, "#!/bin/sh\n[ -f /dev/stdin ] || exit 3\n"))
    assert only(doctor(om), "gemini")[0] == "pass"


def test_a_hook_whose_interpreter_is_gone_fails_and_stops_no_other(om: Om) -> None:
    """A virtual environment that was deleted."""
    hooked(om, "claude-code", str(program(om, "#!/gone/venv/bin/python\nfrom omcli.__main__ import main\n")))
    hooked(om, "gemini")
    found = doctor(om, code=1, env={"PYTHONPATH": str(ROOT)})
    state, text = only(found, "claude-code")
    assert state == "fail"
    assert "but /gone/venv/bin/python, which runs it, does not exist | `om install claude-code`" in text
    assert only(found, "gemini")[0] == "pass"


def test_a_hook_with_a_bare_name_is_the_program_on_path(om: Om) -> None:
    hooked(om, "gemini", "om")
    assert "run om, which is not on PATH" in only(doctor(om, code=1), "gemini")[1]
    own(om, "#!/bin/sh\n")
    assert only(doctor(om), "gemini")[0] == "pass"
    hooked(om, "gemini", "OM_PRESET=coding", "timeout", "-s", "KILL", "5", "om")
    assert only(doctor(om), "gemini")[0] == "pass"
    hooked(om, "gemini", "env", "-u", "OM_DB", sys.executable, "-m", "omcli")
    assert only(doctor(om, env={"PYTHONPATH": str(ROOT)}), "gemini")[0] == "pass"


@pytest.mark.parametrize("value", ["\\q", "\\ud800", "\\u0000", "\\", ""])
def test_an_extension_that_names_nothing_usable_fails(om: Om, value: str) -> None:
    place = om.home / ".pi/agent/extensions/om.ts"
    place.parent.mkdir(parents=True)
    place.write_text(f'// Written by `om install`\nconst OM = "{value}";\n')
    state, text = only(doctor(om, code=1), "pi")
    assert state == "fail"
    assert text.endswith("`om install pi` writes it again")


def test_the_last_run_and_error_of_a_client_are_told(om: Om) -> None:
    hooked(om, "codex")
    log, at = str(om.home / STATE / "hooks.log"), "2026-02-10T10:00:00.000Z"
    env, hooks = {"PYTHONPATH": str(ROOT)}, om.home / ".codex" / "hooks.json"
    assert "/hooks in Codex" in only(doctor(om, env=env), "codex")[1]
    append(log, HookRun(at=at, client="codex", event="SessionStart", ms=31))
    state, text = only(doctor(om, env=env), "codex")
    assert state == "warn", "Codex does not trust hooks that have changed since"
    assert "last run 2026-02-10 10:00 (SessionStart, 31 ms)" in text
    assert "/hooks in Codex" in text
    os.utime(hooks, (0, 0))
    assert only(doctor(om, env=env), "codex")[0] == "pass"
    append(log, HookRun(at=at, client="codex", event="worker", ended=74, error="disk full"))
    assert only(doctor(om, env=env), "codex")[0] == "warn"
    assert "disk full" in only(doctor(om, env=env), "codex")[1]
    assert om("status", "--line").stdout == "\n"
    om("note", "Boats leave at six.")
    assert om("status", "--line").stdout == "1 open error\n"


def test_a_path_with_spaces_is_one_word(om: Om) -> None:
    folder = om.folder / "my programs"
    folder.mkdir()
    path = program(om, f"#!{sys.executable}\nfrom omcli.__main__ import main\nmain()\n").rename(folder / "om")
    om.argv0 = str(path)
    hooked(om, "gemini", str(path))
    assert only(doctor(om, env={"PYTHONPATH": str(ROOT)}), "gemini")[0] == "pass"


def test_hooks_for_some_events_only_are_a_warning(om: Om) -> None:
    """Also if the others are there for the project."""
    place = hooked(om, "claude-code", own(om, "#!/bin/sh\n"))
    settings = json.loads(place.read_text())
    stop = settings["hooks"].pop("Stop")
    place.write_text(json.dumps(settings))
    state, text = only(doctor(om), "claude-code")
    assert state == "warn"
    assert text.endswith("; none for Stop | `om install claude-code` adds them")
    local = om.folder / "ferry/.claude/settings.local.json"
    local.parent.mkdir(parents=True)
    local.write_text(json.dumps({"hooks": {"Stop": stop}}))
    found = om("doctor", "--json", cwd=om.folder / "ferry").document["checks"]
    assert [check["state"] for check in found if check["name"] == "claude-code"] == ["pass", "pass"]


def test_hooks_that_claude_code_is_told_not_to_run_are_a_warning(om: Om) -> None:
    place = hooked(om, "claude-code", own(om, "#!/bin/sh\n"))
    place.write_text(json.dumps({**json.loads(place.read_text()), "disableAllHooks": True}))
    state, text = only(doctor(om), "claude-code")
    assert state == "warn"
    assert text.endswith("`disableAllHooks` in ~/.claude/settings.json turns them off | remove it there")
    shared = om.folder / ".claude/settings.json"
    shared.parent.mkdir()
    shared.write_text('{"disableAllHooks": false}')
    assert only(doctor(om), "claude-code")[0] == "pass"


def test_hooks_of_the_retired_program_are_told(om: Om) -> None:
    hooked(om, "claude-code").write_text(
        '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "om claude-checkpoint"}]}]}}'
    )
    assert only(doctor(om), "old hooks")[1].endswith("| `om install claude-code` replaces them")
    append(str(om.home / STATE / "hooks.log"), HookRun(at="2026-02-10T10:00:00.000Z", client="codex", event=RETIRED))
    om("install", "claude-code", "-q", env={"PYTHONPATH": str(ROOT)})
    found = doctor(om, env={"PYTHONPATH": str(ROOT)})
    assert only(found, "claude-code")[0] == "pass"
    assert "a client has run hooks of the retired om" in only(found, "old hooks")[1]


def test_extensions_and_clients_without_hooks_are_found(om: Om) -> None:
    for name in (".pi/agent/extensions", ".gemini"):
        (om.home / name).mkdir(parents=True)
    path = own(om, f"#!{sys.executable}\nimport omcli\n")
    (om.home / ".pi/agent/extensions/om.ts").write_text(f'// Written by `om install`\nconst OM: string = "{path}";\n')
    found = doctor(om, env={"PYTHONPATH": str(ROOT)})
    assert only(found, "pi")[0] == "pass"
    assert only(found, "gemini")[1] == ("Gemini CLI is on this machine, without hooks of om | `om install gemini`")
    assert not found.keys() & (set(CLIENTS) - {"pi", "gemini"})


def test_settings_of_a_client_that_cannot_be_read_are_told(om: Om) -> None:
    place = hooked(om, "claude-code")
    place.write_text("{")
    state, text = only(doctor(om), "claude-code")
    assert state == "warn"
    assert str(place) in text


def test_hooks_that_om_install_writes_are_found_in_a_project_too(om: Om) -> None:
    om("install", "claude-code", "--project", "-q", env={"PYTHONPATH": str(ROOT)})
    assert only(doctor(om, env={"PYTHONPATH": str(ROOT)}), "claude-code")[0] == "pass"
    assert om("doctor", "--json", "-C", om.home, env={"PYTHONPATH": str(ROOT)}).document["failed"] == 0


# ---- the status line


def test_the_status_line_tells_what_waits(om: Om) -> None:
    """S3.6."""
    assert om("status", "--line").stdout == "\n"
    om("note", "Boats leave at six.")
    assert om("status", "--line").stdout == "up to date\n"
    om("observe", "-q", "--later", stdin=tide_story().text())
    assert om("status", "--line").stdout == "8 waiting\n"
    assert om("status", "--line", "--json").document == {"schema": 1, "line": "8 waiting", "waiting": 8, "errors": 0}
    model = always(om, {"error": "refused"}).model
    om(
        "tick",
        "-q",
        "--now",
        "2026-02-10T10:00:00Z",
        env={"OM_OBSERVER_MODEL": model, "OM_OBSERVE_TOKENS": "0"},
        code=None,
    )
    limited = {"OM_LIMITS_DAY_COST": "2"}
    assert om("status", "--line", env=limited).stdout == "8 waiting · 1 open error · 0 % of budget\n"
    assert om("status", "--line", env={"OM_DISABLED": "1"}).stdout == "off\n"
    om("status", "--line", "--wait", "soon", code=2)
