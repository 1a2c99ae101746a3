"""The Python API and `om` on one store: in turns, in fresh processes and at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import chdir
from time import sleep
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from omcli.tokenizers import counter
from tests.architecture.test_hot_path import HEAVY
from tests.conftest import Om
from tests.e2e.contents import connected, stored
from tests.e2e.long_work import LASTING, STANDING, long_work
from tests.e2e.scripts import pending
from tests.soak import first_only

SESSION = "tide-table"
SETTINGS = {
    "OM_OBSERVE_TOKENS": "1500", "OM_REFLECT_TOKENS": "900", "OM_CONTEXT_TAIL": "700", "OM_CONTEXT_SESSION": "1200",
    "OM_CONTEXT_CROSS": "300",
}  # fmt: skip
PRELUDE = """
import json, sys
from omcli import ContextCompressor
compressor = ContextCompressor("tide-table")
given = json.load(sys.stdin)
"""
INGEST = PRELUDE + "json.dump({'new': compressor.ingest(given).new}, sys.stdout)"
TICK = PRELUDE + "done = compressor.tick(); assert done.error is None; json.dump({'pending': done.pending}, sys.stdout)"
ENDED = (
    PRELUDE
    + """
with compressor:
    compressor.ingest(given)
    compressor.flush()
    json.dump([item.text for item in compressor.reflect().items], sys.stdout)
"""
)
CONTEXT = (
    PRELUDE
    + """
import dataclasses
found = compressor.build_context(given)
json.dump({name: getattr(found, name) for name in ("text", "cross", "session", "working", "messages")}
          | {"stats": dataclasses.asdict(found.stats)}, sys.stdout)
"""
)


def python(om: Om, program: str, given: object = None, env: dict[str, str] | None = None) -> Any:
    """What a program prints, as JSON; a fresh process."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        env=om.environment(env),
        cwd=om.folder,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout or "null")


_HERE = typer.Typer()


@_HERE.command()
def run_program(program: str) -> None:
    """Run a Python program."""
    exec(program, {})


def here(om: Om, program: str, given: object = None) -> Any:
    """What a program prints, as JSON; in this process, with nothing of a run before."""
    environment = om.environment()
    others: dict[str, str | None] = dict.fromkeys(os.environ.keys() - environment.keys())
    with chdir(om.folder):
        done = CliRunner().invoke(
            _HERE, [program], input=json.dumps(given), env={**others, **environment}, catch_exceptions=False
        )
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout or "null")


def observe(om: Om, messages: list[dict[str, Any]], *arguments: str) -> int:
    """Hands the conversation so far to the command line; how many messages were new."""
    run = om("observe", "--session", SESSION, "--json", *arguments, stdin=json.dumps(messages), env=SETTINGS)
    new: int = run.document["files"][0]["new_messages"]
    return new


def kept(om: Om) -> int:
    """How many messages the store holds."""
    return int(om("status", "--json").document["messages"])


def test_a_long_session_is_remembered_by_whichever_process_comes_next(om: Om) -> None:
    """S0.1, S0.8, S0.15, S0.38, T73: 120 messages in pieces, a new process each, first by `om`, then from Python."""
    story = long_work()
    tokens = counter("o200k-approx").text
    assert len(story) > 120
    python(om, ENDED.replace("tide-table", "before"), [{"role": "user", "content": "Always ask before you delete."}])
    cuts = [*range(8, len(story), 40), len(story)]
    for step, cut in enumerate(cuts):
        by_om = step < len(cuts) // 2
        if by_om:
            observe(om, story[:cut], "--later")
            om("tick", env=SETTINGS, code=None)
        else:
            python(om, INGEST, story[:cut], SETTINGS)
            python(om, TICK, None, SETTINGS)
        status = om("status", "--json").document
        assert status["messages"] == cut, "all but the system message, and the one of the session before"
        found = om("context", "--session", SESSION, "--json", env=SETTINGS).document
        assert found["tokens"]["tail"] <= 700
        assert found["tokens"]["session"] <= 1200
        assert found["tokens"]["cross"] <= 300
        assert found["pending"] == status["pending"]
        assert tokens(om("context", "--session", SESSION, env=SETTINGS).stdout) <= 2200
    om("consolidate", "--session", SESSION, env=SETTINGS)
    items = [item["text"] for item in om("items", "--jsonl").lines]
    assert all(any(said in item for item in items) for said in LASTING), items
    packs = {budget: python(om, CONTEXT, budget, SETTINGS) for budget in (None, 1500, 400)}
    for budget, context in packs.items():
        stats = context["stats"]
        assert tokens(context["text"]) <= stats["budget"] == (budget or 2200)
        assert stats["working"] <= 700
        assert stats["pending"] == 0
    whole = packs[None]
    assert min(whole["stats"][tier] for tier in ("working", "session", "cross")) > 0
    assert "Always ask before you delete." in whole["cross"]
    assert whole["working"].endswith("What is left before we can release the table?")
    printed = om("context", "--session", SESSION, env=SETTINGS).stdout
    assert printed == whole["text"]


def test_what_one_session_learnt_the_next_one_is_told(om: Om) -> None:
    """S0.8, T73: from Python all the way, with the end of the session."""
    items = here(om, ENDED, long_work())
    assert any(STANDING in item for item in items)
    another = CONTEXT.replace('ContextCompressor("tide-table")', 'ContextCompressor("the next one")')
    assert STANDING in here(om, another, 2000)["cross"]
    assert STANDING in om("context", "--session", "one not heard of yet").stdout


def test_the_numbers_are_the_same_on_the_command_line(om: Om) -> None:
    """S0.17."""
    observe(om, long_work()[:60])
    observe(om, long_work()[:90], "--later")
    found = om("context", "--session", SESSION, "--budget", "1000", "--json").document
    stats = here(om, CONTEXT, 1000)["stats"]
    assert found["pending"] == stats["pending"] == 30
    assert (found["counter"], found["budget"]) == (stats["counter"], stats["budget"])
    assert found["tokens"].keys() == {"total", "cross", "session", "tail"}
    assert all(found["tokens"][tier] > 0 for tier in ("session", "tail"))


def test_python_and_om_take_turns_and_nothing_is_lost_or_doubled(om: Om) -> None:
    """The whole conversation each time, what is new of it, or a window: whoever comes, adds what the others lack."""
    story = long_work()
    assert observe(om, story[:5]) == 4
    assert here(om, INGEST, story[:9])["new"] == 4
    assert observe(om, story[:12]) == 3
    assert here(om, INGEST, story[12])["new"] == 1
    assert here(om, INGEST, story[8:20])["new"] == 7
    assert observe(om, story[:24], "--later") == 4
    assert here(om, INGEST, story[:24])["new"] == 0
    assert here(om, INGEST, story[24:26])["new"] == 2
    assert observe(om, story[:26]) == 0
    assert kept(om) == 25


def test_a_plain_conversation_that_gets_tools_is_still_the_same(om: Om) -> None:
    """What it is shows with the first tool call, to `om` as to Python."""
    plain = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {}}]}
    assert observe(om, plain) == 2
    assert observe(om, [*plain, use]) == 1
    assert here(om, INGEST, [*plain, use])["new"] == 0
    assert here(om, INGEST, {"role": "user", "content": "hello"})["new"] == 1
    assert kept(om) == 4


FEED = (
    PRELUDE
    + """
for length in range(1, len(given) + 1, 3):
    compressor.ingest(given[:length])
    print(length, flush=True)
    if length % 4 == 1:
        compressor.tick()
    compressor.build_context(500)
compressor.ingest(given)
"""
)
EVENTS = (
    PRELUDE
    + """
for number in range(15):
    compressor.ingest({"role": "user", "content": "go on"})
    compressor.ingest({"role": "user", "content": f"{given} says {number}"})
"""
)


def test_python_and_om_work_at_the_same_time(om: Om) -> None:
    """The same growing conversation from both, and ticks beside them: each message once, each covered once."""
    story = long_work()[:61]
    env = {**SETTINGS, "OM_OBSERVE_TOKENS": "200"}
    feeding = [_started(om, FEED, story, env) for _ in range(2)]
    for cut in range(1, 62, 12):
        observe(om, story[:cut], "--later")
        om("tick", env=env, code=None)
        om("context", env=env)
    observe(om, story)
    for process in feeding:
        assert _ended(process) == 0
    om("tick", env={**env, "OM_OBSERVE_TOKENS": "0"}, code=None)
    assert (kept(om), pending(om)) == (60, 0)
    alone = json.loads(om("context", "--session", SESSION, "--tier", "tail", "--to", "messages").stdout)
    assert [entry["content"] for entry in alone if entry["role"] == "user"] == [
        entry["content"] for entry in story if entry["role"] == "user"
    ][-sum(entry["role"] == "user" for entry in alone) :]
    _is_covered_once(om)


@pytest.mark.parametrize("kills", first_only([4, 8]))
def test_an_agent_that_is_killed_loses_and_doubles_nothing(om: Om, kills: int) -> None:
    """S0.15, S0.38: whenever it dies, the next one hands the same conversation over and goes on."""
    story = long_work()[:61]
    env = {**SETTINGS, "OM_OBSERVE_TOKENS": "200"}
    for step in range(kills):
        process = _started(om, FEED, story, env)
        assert process.stdout is not None
        for _ in range(1 + 2 * step):
            process.stdout.readline()
        sleep(0.01 * step)  # it is at the next step, somewhere
        process.kill()
        _ended(process)
    python(om, ENDED, story, env)
    assert (kept(om), pending(om)) == (60, 0)
    _is_covered_once(om)


def test_events_of_two_processes_are_all_kept(om: Om) -> None:
    """S0.8: also where both say the same."""
    feeding = [_started(om, EVENTS, name, SETTINGS) for name in ("one", "two", "three")]
    for process in feeding:
        assert _ended(process) == 0
    assert kept(om) == 90


def _is_covered_once(om: Om) -> None:
    """Each batch begins where the one before it ended."""
    with connected(om.place) as store:
        ends = store.execute(
            "SELECT after, through FROM batches WHERE outcome IN ('observed', 'empty') ORDER BY number"
        )
        batches = ends.fetchall()
    assert len(batches) > 1
    assert [after for after, _ in batches] == [0, *(through for _, through in batches[:-1])]


def _started(om: Om, program: str, given: object, env: dict[str, str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=om.environment(env),
        cwd=om.folder,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(given))
    process.stdin.close()
    return process


@pytest.mark.file_store("its permissions")
def test_a_context_leaves_a_store_that_may_only_be_read_as_it_was(om: Om) -> None:
    """F51, S0.19."""
    observe(om, long_work()[:40])
    before = stored(om.place)
    om.db.chmod(0o400)
    om.db.parent.chmod(0o500)
    try:
        assert python(om, CONTEXT, 1000)["stats"]["session"] > 0
    finally:
        om.db.parent.chmod(0o700)
    assert stored(om.place) == before


def _ended(process: subprocess.Popen[str]) -> int:
    with process:  # which closes its pipes
        return process.wait(timeout=120)


def test_importing_the_package_loads_nothing(om: Om) -> None:
    """Invariant 12: `om` begins with it, and so may any program that only might remember something."""
    listed = "; import sys, json; json.dump(sorted(sys.modules), sys.stdout)"
    modules = python(om, "import omcli" + listed)
    assert [module for module in modules if module.startswith("omcli")] == ["omcli"]
    assert not {"json.decoder", "importlib.resources", "sqlite3", "threading", "pathlib"} & set(
        python(om, "import omcli, sys; print('[' + ', '.join(f'\"{name}\"' for name in sys.modules) + ']')")
    )
    modules = python(om, "from omcli import OmError" + listed)
    assert {module for module in modules if module.startswith("omcli.")} == {"omcli.base", "omcli.base.errors"}
    modules = python(om, "from omcli import ContextCompressor" + listed)
    assert not (HEAVY - {"logging"}) & set(modules)
    assert not {module for module in modules if module.startswith(("omcli.cli", "omcli.formats", "omcli.observers"))}


def test_a_program_that_uses_the_api_keeps_its_signals_and_its_hooks(om: Om) -> None:
    """A library takes nothing over: what Ctrl-C does, and who tells of errors, is for the program to say."""
    program = """
import json, signal, sys
def state():
    return [*map(signal.getsignal, signal.valid_signals()), sys.excepthook, sys.unraisablehook, sys.stdout, sys.stderr]
before = state()
from omcli import ContextCompressor, OmError
with ContextCompressor("tide-table", settings={"observer.model": "command/false"}) as compressor:
    compressor.ingest({"role": "user", "content": "We decided to print the tables on blue paper."})
    compressor.tick()
    try:
        compressor.flush()
    except OmError as error:
        print(json.dumps(error.message))
    compressor.build_context()
assert state() == before
"""
    assert python(om, program).startswith("false ended with exit code 1")
