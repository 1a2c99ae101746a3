"""`om observe --background` and `om tick --background`: what is due is done by a worker that nobody waits for."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Om
from tests.e2e.background import EAGER, at_work, begun, codes, log_of, told, wait_for_workers, wait_until
from tests.e2e.contents import assert_covered_once, number_of
from tests.e2e.scripts import UNTIL, Script, always, pending, rows, script
from tests.e2e.test_tick import asking, keep, sized
from tests.e2e.transcripts import Talk, tide_story


def left(om: Om, model: Script, *arguments: str | Path, env: dict[str, str] | None = None) -> str:
    """What `om observe --background` says on stderr; on stdout there has to be nothing."""
    transcript = om.write("t.jsonl", tide_story(session="s").text())
    run = om("observe", "--background", transcript, "--model", model.model, *arguments, env={**EAGER, **(env or {})})
    assert run.stdout == ""
    return run.stderr


# What a caller sees


def test_a_worker_observes_what_a_caller_has_kept(om: Om) -> None:
    """S0.3, S0.18, S1.10, C7: messages first, then a worker; the next call finds what it made of them."""
    model = always(om, "echo")
    said = left(om, model)
    assert "8 messages pending" in said
    assert f"1 session left to a background worker; its log is {log_of(om)}" in said
    wait_for_workers(om, 1)
    assert (pending(om), codes(om), len(model.asked)) == (0, [0], 1)
    assert {row["source"] for row in rows(om)} >= {"model"}
    assert_covered_once(om.place)


def test_a_caller_does_not_wait_for_the_model_nor_does_who_reads_what_it_prints(om: Om) -> None:
    """S0.3, S0.19, T75: neither its end nor that of its pipes; the worker has none of its descriptors."""
    model = always(om, {"text": "echo", **UNTIL})
    transcript = om.write("t.jsonl", tide_story(session="s").text())
    reading, writing = os.pipe()
    with transcript.open("rb") as stdin:
        caller = subprocess.Popen(
            om.command("observe", "--background", "-", "--session", "s", "--model", model.model),
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[writing],
            env=om.environment(EAGER), cwd=om.folder,
        )  # fmt: skip
    os.close(writing)
    assert caller.communicate(timeout=60)[0] == b""
    assert os.read(reading, 1) == b"", "the end of a pipe that was passed on for no reason"
    os.close(reading)
    assert caller.returncode == 0
    wait_until(lambda: model.asked)
    (worker,) = at_work(om)
    assert om("context", "--session", "s").stdout
    assert at_work(om) == [worker], "nobody has waited for its model, which never answers"
    os.kill(worker, signal.SIGTERM)
    wait_for_workers(om, 1)


def test_json_tells_of_the_worker(om: Om) -> None:
    model = always(om, "echo")
    transcript = om.write("t.jsonl", tide_story(session="s").text())
    command = ("observe", "--background", "--json", transcript, "--model", model.model)
    run = om(*command, env=EAGER)
    assert run.document["files"][0]["pending"] == 8
    told_of = {"started": True, "sessions": ["s"], "at_once": [], "log": str(log_of(om))}
    assert run.document["background"] == told_of
    wait_for_workers(om, 1)
    run = om(*command, env=EAGER)
    assert run.document["background"] == {"started": False, "sessions": [], "at_once": []}


def test_nobody_is_started_where_a_worker_is_at_it(om: Om) -> None:
    """T75: it looks again when it is done; so a host may call as often as it likes."""
    model = script(om, {"text": "echo", **UNTIL}, "echo", "echo")
    left(om, model)
    wait_until(lambda: model.asked)
    talk = tide_story(session="s")
    for number in range(2):
        path = om.write("t.jsonl", talk.user(f"We decided to keep gauge {number}.").text())
        run = om("observe", "--background", "--json", path, "--model", model.model, env=EAGER)
        assert run.document["background"]["started"] is False
        assert run.document["background"]["sessions"] == ["s"]
    model.answers()
    wait_for_workers(om, 1)
    assert (pending(om), len(begun(om)), len(model.asked)) == (0, 1, 2)
    assert_covered_once(om.place)


def test_nobody_is_started_where_nothing_is_due(om: Om) -> None:
    """By the preset: 10 000 tokens, or what else it waits for; and none at all where om is disabled."""
    model = always(om, "echo")
    said = left(om, model, env={"OM_OBSERVE_TOKENS": "10000"})
    assert "worker" not in said
    left(om, model, env={"OM_PRESET": "pi"})
    left(om, model, env={"OM_DISABLED": "1"})
    run = om("tick", "--background", "--model", model.model, code=1)
    assert run.stderr == "om: nothing is due\n"
    om("observe", "--background", om.write("bad.txt", "\0"), code=65)
    om("observe", "--background", om.folder / "none", code=66)
    assert begun(om) == []
    assert not log_of(om).exists()


def test_a_tick_is_left_to_a_worker(om: Om) -> None:
    """C7: for hosts whose messages are kept by other means."""
    for session in ("a", "b"):
        keep(om, tide_story(session=session))
    model = always(om, "echo")
    run = om("tick", "--background", "--model", model.model, env=EAGER)
    assert "2 sessions left to a background worker" in run.stderr
    wait_for_workers(om, 1)
    assert (pending(om), len(model.asked), len(begun(om))) == (0, 2, 1)
    assert om("tick", "--background", "--check", code=2).stdout == ""


def test_a_worker_reflects_as_well_where_that_is_due(om: Om) -> None:
    """S0.20: after observing, under a lease of its own."""
    model = always(om, "echo")
    left(om, model, env={"OM_REFLECT_TOKENS": "20"})
    wait_for_workers(om, 1)
    assert [ask["name"] for ask in model.asked][:2] == ["observations", "reflection"]
    assert "reflection" in {row["kind"] for row in rows(om)}
    assert number_of(om.place, "leases") == 0


def test_a_worker_goes_by_the_settings_of_its_caller(om: Om) -> None:
    """The store, the preset, the configuration, the counter, the time, the model and the directory."""
    model = always(om, "echo")
    other = om.folder / "elsewhere"
    other.mkdir()
    (other / ".om.toml").write_text("[tools]\nargs_chars = 3\n")
    config = om.write("own.toml", "observe.tokens = 5\nobserve.block_after = 0\nobserve.chunk_messages = 3\n")
    transcript = om.write("t.jsonl", tide_story(session="s").text())
    om(
        "observe", "--background", transcript, "-C", "elsewhere", "--db", "here.db", "--config", config,
        "--preset", "duet", "--counter", "chars-4", "--now", "2026-03-01T10:00:00Z",
        "--wait", "7", "--model", model.model, "--verify",
        env={"OM_OBSERVE_TRIGGER": "tokens"},
    )  # fmt: skip
    wait_for_workers(om, 1)
    assert codes(om) == [0]
    found = rows(om, "--db", str(other / "here.db"))
    assert {row["observed_at"] for row in found} == {"2026-03-01T10:00:00.000Z"}
    assert {row["counter"] for row in found} == {"chars-4"}
    assert not any("unverified" in row.get("tags", ()) for row in found), "--verify was passed on"
    assert len(model.asked) > 1, "three messages at once"
    assert not om.has_store


def test_a_session_may_be_called_anything(om: Om) -> None:
    """What a command line cannot hold, or would take for something else, is for a transcript to say."""
    names = ["a\0b", "--db=/elsewhere.db", "-", "q\nz", "*" * 10_000, "é😀", "$(id)", "x"]
    paths = [om.write(f"{number}.jsonl", tide_story(session=name).text()) for number, name in enumerate(names)]
    model = always(om, "echo")
    for number, path in enumerate(paths[1:], 1):
        run = om("observe", "--background", path, "--model", model.model, env=EAGER)
        assert "left to a background worker" in run.stderr
        wait_for_workers(om, number)
    assert pending(om) == 0
    om("observe", "--background", paths[0], "--model", model.model, env=EAGER)
    wait_for_workers(om, len(names))
    assert (pending(om), set(codes(om))) == (0, {0})


def test_what_lies_in_the_directory_is_not_run(om: Om) -> None:
    """A project may hold files by the names of Python's modules, and of om's."""
    for name in ("omcli.py", "json.py", "sqlite3.py"):
        om.write(name, "raise SystemExit('taken for a module')")
    path = ":".join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    model = always(om, "echo")
    ended = subprocess.run(
        [*om.command()[:1], "-P", "-m", "omcli", "observe", "--background", "--model", model.model, "-"],
        input=tide_story(session="s").text().encode(), cwd=om.folder, check=True, capture_output=True,
        env=om.environment({**EAGER, "PYTHONPATH": path}),
    )  # fmt: skip
    assert b"left to a background worker" in ended.stderr
    wait_for_workers(om, 1)
    assert codes(om) == [0]


# Rules


def test_rules_observe_at_once_and_need_no_worker(om: Om) -> None:
    """XB2: a short session is remembered by the next one, which may begin a moment later."""
    talk = Talk(session="short").user("Always use pnpm in this project.")
    run = om("observe", "--background", "--json", stdin=talk.text())
    assert run.document["background"] == {"started": False, "sessions": [], "at_once": ["short"]}
    assert "Always use pnpm" in om("context", "--session", "next-session-0001", env={"OM_SCOPE": "global"}).stdout
    assert (pending(om), begun(om)) == (0, [])
    keep(om, talk.assistant("I will.").user("Never push on Fridays."))
    assert om("tick", "--background").stdout == ""
    assert (pending(om), begun(om)) == (0, [])
    om("tick", "--background", code=1)


def test_a_model_that_reflects_on_what_rules_observed_is_left_to_a_worker(om: Om) -> None:
    """XB2, S0.3: nobody waits for it."""
    model = always(om, "echo")
    env = {"OM_REFLECTOR_MODEL": model.model, "OM_REFLECT_TOKENS": "20"}
    run = om("observe", "--background", "--json", stdin=tide_story(session="s").text(), env=env)
    assert (run.document["background"]["at_once"], run.document["background"]["sessions"]) == (["s"], ["s"])
    wait_for_workers(om, 1)
    assert [ask["name"] for ask in model.asked][:1] == ["reflection"]


# Too much waits


@pytest.mark.parametrize(
    ("tokens", "is_at_once"), [(37_000, True), (36_000, True), (35_999, False), (35_000, False)], ids=str
)
def test_what_is_too_much_is_observed_at_once(om: Om, tokens: int, *, is_at_once: bool) -> None:
    """T77, S0.22, S0.41: by `mastra` from 36 000 tokens on, which is said; the worker is not needed then."""
    model = always(om, "echo")
    transcript = om.write("t.jsonl", asking("s", tokens, name="chars-2.5").text())
    run = om("observe", "--background", transcript, "--preset", "mastra", "--model", model.model)
    assert run.stdout == ""
    assert (f"{tokens} tokens are pending (observe.block_after is 36000)" in run.stderr) == is_at_once
    assert ("left to a background worker" in run.stderr) != is_at_once
    if is_at_once:
        assert len(model.asked) >= 1
        assert pending(om) == 0
    else:
        wait_for_workers(om, 1)


def test_what_was_observed_ahead_keeps_nobody_waiting(om: Om) -> None:
    """T77: 37 000 tokens wait as before, and of most of them a worker has made blocks that need no model."""
    model = always(om, "echo")
    command = ("observe", "--background", "--json", "--preset", "mastra", "--model", model.model)
    sizes = [5_000]
    while sum(sizes) < 20_000:
        sizes.append(5_000)
        before = len(begun(om))
        ahead = om(*command, om.write("t.jsonl", asking("s", *sizes, name="chars-2.5").text()))
        assert ahead.document["background"]["started"]
        wait_for_workers(om, before + 1)
    assert (rows(om), pending(om), len(model.asked)) == ([], 4, 3)
    run = om(*command, om.write("t.jsonl", asking("s", *sizes, 17_000, name="chars-2.5").text()))
    assert run.document["background"]["at_once"] == []
    wait_for_workers(om, 4)
    assert pending(om) < 5


@pytest.mark.parametrize(
    ("said", "is_at_once"), [("2", True), ("3.9", True), ("4.5", False), ("399", True), ("500", False), ("0", False)]
)
def test_how_much_is_too_much_is_a_setting(om: Om, said: str, *, is_at_once: bool) -> None:
    """S0.22: times `observe.tokens`, from 100 on tokens, 0 for never."""
    transcript = om.write("t.jsonl", asking("s", 400).text())
    env = {"OM_OBSERVE_TOKENS": "100", "OM_OBSERVE_BLOCK_AFTER": said, "OM_COUNTER": "chars-4"}
    run = om("observe", "--background", "--json", transcript, "--model", always(om, "echo").model, env=env)
    told_of = run.document["background"]
    assert (told_of["at_once"], told_of["sessions"]) == ((["s"], []) if is_at_once else ([], ["s"]))
    wait_for_workers(om, 0 if is_at_once else 1)
    assert pending(om) == 0


def test_too_much_waits_for_a_slow_worker_as_long_as_it_is_told_to(om: Om) -> None:
    """S0.22, D4: under the lane of a worker it gives up after `--wait`, with a warning and exit 0."""
    model = script(om, {"text": "echo", **UNTIL}, "echo", "echo")
    left(om, model)
    wait_until(lambda: model.asked)
    transcript = om.write("t.jsonl", tide_story(session="s").user("We decided to keep it.").text())
    env = {"OM_OBSERVE_TOKENS": "100", "OM_OBSERVE_BLOCK_AFTER": "150"}
    run = om("observe", "--background", transcript, "--model", model.model, "--wait", "0.3", env=env)
    assert "observing now" in run.stderr
    assert "is at the observe lane of session s" in run.stderr
    assert "1 session left to running workers" in run.stderr
    model.answers()
    wait_for_workers(om, 1)
    assert pending(om) in (0, 1)  # the one message alone is not due
    assert number_of(om.place, "leases") == 0


def test_under_pi_nothing_is_done_but_compacting(om: Om) -> None:
    """S3.11, S3.19: no worker, nothing ahead, nothing of other sessions; `om compact` does it, and is waited for."""
    om("observe", "-q", stdin=Talk(session="other").user("Always ask before you delete.").text())
    talk = tide_story(session="s").assistant(sized(40_000, "chars-4")).user("Is it done?").assistant("It is done.")
    transcript = om.write("t.jsonl", talk.text())
    env = {"OM_PRESET": "pi", "OM_OBSERVER_PROVIDER": "rules"}
    run = om("observe", "--background", "--json", transcript, env=env)
    assert (run.document["background"]["sessions"], run.document["background"]["at_once"]) == ([], [])
    assert (begun(om), pending(om)) == ([], 11)
    om("tick", env=env, code=1)
    assert (rows(om, "--session", "s"), pending(om)) == ([], 11)
    assert "before you delete" in om("context", "--session", "s").stdout
    assert "before you delete" not in om("context", "--session", "s", env=env).stdout
    summary = om("compact", "--session", "s", "--to", "pi", env=env).document["summary"]
    assert re.search(r"- \[!\] \d\d:\d\d User: Always use metric units\.", summary)
    assert (begun(om), pending(om)) == ([], 0)


# What goes wrong


def test_a_model_that_fails_is_told_by_the_status(om: Om) -> None:
    """F97, T12, S0.42: the caller succeeds, messages wait, and the next worker covers them."""
    model = script(om, {"error": "unreachable", "text": "the gauge model is out"}, "echo")
    left(om, model)
    wait_for_workers(om, 1)
    assert codes(om) == [69]
    (error,) = om("status", "--json").document["errors"]
    assert (error["session"], error["lane"]) == ("s", "observe")
    assert "the gauge model is out" in error["error"]
    assert "a worker ended with 69: the gauge model is out" in om("status").stdout
    assert pending(om) == 8
    left(om, model)
    wait_for_workers(om, 2)
    assert pending(om) == 0
    assert om("status", "--json").document["errors"] == []
    assert "a worker did what was due" in om("status").stdout
    assert_covered_once(om.place)


def test_a_key_that_is_missing_is_a_warning_and_told_by_the_status(om: Om) -> None:
    """F97, D4, S3.17: nobody is started in vain; `om tick` and `om reflect` from a crontab leave a trace as well."""
    transcript = om.write("t.jsonl", tide_story(session="s").text())
    command = ("observe", "--background", transcript, "--observer", "anthropic")
    run = om(*command, env=EAGER)
    assert "om: warning: anthropic needs a key" in run.stderr
    assert "8 messages pending" in run.stderr
    assert begun(om) == []
    (error,) = om("status", "--json").document["errors"]
    assert error["error"].startswith("anthropic needs a key")
    om("tick", "--observer", "rules", env=EAGER)
    assert om("status", "--json").document["errors"] == []
    keep(om, tide_story(session="other"))
    om("tick", "--observer", "anthropic", env=EAGER, code=77)
    (error,) = om("status", "--json").document["errors"]
    assert (error["session"], error["lane"]) == ("other", "observe")


def test_who_lacks_a_key_keeps_a_worker_from_nothing_else(om: Om) -> None:
    """F75, F97: what waits is observed though nobody reflects on it, and reflected on though nobody observes more."""
    env = {"OM_REFLECT_TOKENS": "20"}
    left(om, always(om, "echo"), env={**env, "OM_REFLECTOR_PROVIDER": "anthropic"})
    wait_for_workers(om, 1)
    assert (codes(om), pending(om)) == ([77], 0)
    assert "anthropic needs a key" in om("status").stdout
    transcript = om.write("t.jsonl", tide_story(session="s").user("We decided to keep it.").text())
    env = {**EAGER, **env, "OM_REFLECTOR_PROVIDER": "rules"}
    run = om("observe", "--background", transcript, "--observer", "anthropic", env=env)
    assert "1 session left to a background worker" in run.stderr
    wait_for_workers(om, 2)
    assert (codes(om), pending(om)) == ([77, 77], 1)
    assert "item" in {row["kind"] for row in rows(om)}
    (error,) = om("status", "--json").document["errors"]
    assert error["lane"] == "observe"


def test_a_worker_that_was_killed_is_told_by_the_status(om: Om) -> None:
    """F97, F24: and one that is at it."""
    model = always(om, {"text": "echo", **UNTIL})
    left(om, model)
    wait_until(lambda: model.asked)
    assert "a worker is running" in om("status").stdout
    (worker,) = at_work(om)
    os.kill(worker, signal.SIGKILL)
    wait_for_workers(om, 1)
    assert "a worker was killed" in om("status").stdout
    assert om("status", "--json").document["background"]["last"]["killed"] is True


def test_a_folder_that_cannot_be_written_is_a_warning(om: Om) -> None:
    """D4: the messages are kept, and wait for `om tick`."""
    om.write("home/.local", "in the way")
    said = left(om, always(om, "echo"))
    assert "om: warning: " in said
    assert "`om tick` does what is due" in said
    assert pending(om) == 8


def test_what_was_done_at_once_is_told_even_if_no_worker_can_be_started(om: Om) -> None:
    """XB2: rules observed the session; the model that reflects would need a worker."""
    om.write("home/.local", "in the way")
    env = {"OM_REFLECTOR_MODEL": always(om, "echo").model, "OM_REFLECT_TOKENS": "20"}
    run = om("observe", "--background", "--json", stdin=tide_story(session="s").text(), env=env, code=None)
    assert run.document["background"] == {"started": False, "sessions": [], "at_once": ["s"]}
    assert "`om tick` does what is due" in run.stderr
    assert pending(om) == 0


def test_what_cannot_be_left_to_a_worker_is_not_said_to_be_nothing(om: Om) -> None:
    """Exit 73 where no log can be made, and what is due stays due."""
    keep(om, tide_story(session="s"))
    om.write("home/.local", "in the way")
    model = always(om, "echo")
    run = om("tick", "--background", "--model", model.model, env=EAGER, code=73)
    assert "om: warning: the log of workers cannot be written" in run.stderr
    assert "nothing is due" not in run.stderr
    om("tick", "--check", "--model", model.model, env=EAGER)
    assert pending(om) == 8


def test_the_log_is_for_its_owner_and_stays_small(om: Om) -> None:
    """Mode 0600 in a folder of mode 0700; a large one gives way, and the last is kept."""
    model = always(om, "echo")
    left(om, model)
    wait_for_workers(om, 1)
    log = log_of(om)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700
    assert not any(row["text"] in log.read_text() for row in rows(om)), "what is remembered stays in the store"
    log.write_text("said long ago\n" * 100_000)
    keep(om, tide_story(session="t"))
    om("tick", "--background", "--model", model.model, env=EAGER)
    wait_for_workers(om, 1)
    assert log.stat().st_size < 2_000
    assert log.with_name("background.log.1").stat().st_size == 1_400_000
    assert [line["store"] for line in told(om)] == [str(om.place)] * 2
