"""The way of a batch through `om observe` and `om reflect`: straight, not deep, and through few modules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest

from omcli.memory.observation import Status, Type
from tests.architecture.hot_path import last_word
from tests.conftest import Om
from tests.e2e.reflecting import kept
from tests.material import row

DEEPEST = 14
"""Calls of our own functions inside each other, at most."""
LOADED = 70
"""Modules of our own that are imported, at most."""
ENTRIES = 2
"""Calls into a module of `operations` from another one, between the claim of a batch and its record, at most."""
ACCESSORS = {"omcli.operations.deps", "omcli.operations.clock"}
"""Modules that only return what they hold."""
CHAT = [
    ("user", "Please add a migration for Postgres. We always use metric units."),
    ("assistant", "I added migrations/001_init.sql and ran the tests. We decided to use UUIDs as keys."),
    ("user", "Which port is it? Use 5433 from tomorrow on, not 5432."),
    ("assistant", "The port is now 5433."),
]
TRACED = """
import json, os, sys
claim, record, *arguments = sys.argv[1:]
deepest, entries, claimed, recorded = [], [], False, False

def name(frame):
    return frame.f_globals.get("__name__", "")

def trace(frame, event, argument):
    global deepest, claimed, recorded
    if event != "call":
        return
    stack, at = [], frame
    while at is not None:
        if name(at).startswith("omcli"):
            stack.append(f"{name(at)}:{at.f_code.co_name}")
        at = at.f_back
    if len(stack) > len(deepest) and not any(call.endswith(":<module>") for call in stack):
        deepest = stack
    if stack and stack[0].endswith(claim) and not recorded:
        claimed = True
        entries.clear()
    if stack and stack[0].endswith(record):
        recorded = True
    if claimed and not recorded and len(stack) > 1 and stack[0].split(":")[0] != stack[1].split(":")[0]:
        entries.append(stack[0])

def leave(code, leave=os._exit):
    sys.setprofile(None)
    loaded = sorted(module for module in sys.modules if module.startswith("omcli"))
    print(json.dumps({"deepest": deepest[::-1], "entries": entries, "loaded": loaded}), file=sys.stderr, flush=True)
    leave(code)

os._exit, sys.argv = leave, ["om", *arguments]
sys.setprofile(trace)
from omcli.__main__ import main
main()
"""


def traced(om: Om, claim: str, record: str, *arguments: str) -> dict[str, list[str]]:
    """The deepest stack of a run, the calls from module to module between two calls, and the modules loaded."""
    found: dict[str, list[str]] = json.loads(last_word(om, TRACED, claim, record, *arguments))
    return found


@pytest.fixture(name="observed", scope="module")
def observed_run(new_om: Callable[[], Om]) -> dict[str, list[str]]:
    """What `traced` says of `om observe`."""
    om = new_om()
    om.write("chat.jsonl", "\n".join(json.dumps({"role": role, "content": text}) for role, text in CHAT))
    return traced(om, "batches:unobserved", "batches:record", "observe", "-q", "chat.jsonl")


@pytest.fixture(name="reflected", scope="module")
def reflected_run(new_om: Callable[[], Om]) -> dict[str, list[str]]:
    """What `traced` says of `om reflect`."""
    om = new_om()
    commands = ["pytest -q", "ruff check", "mypy omcli", "make docs", "cargo build"]
    runs = [
        row(
            number,
            text=f"Ran: {commands[number % 5]} → ok: run {number} has passed without a single warning",
            type=Type.COMMAND_RUN,
            status=Status.DONE,
            metadata={"command": commands[number % 5], "times": 1},
        )
        for number in range(1, 41)
    ]
    kept(om, *runs)
    return traced(om, "lanes:claim", "operations:fold", "reflect", "-q", "--session", "s")


def test_observing_a_small_file_is_not_deep(observed: dict[str, list[str]]) -> None:
    """Whoever follows it in a debugger sees the whole stack."""
    assert 8 < len(observed["deepest"]) <= DEEPEST, "\n".join(observed["deepest"])


def test_observing_a_small_file_loads_few_modules(observed: dict[str, list[str]]) -> None:
    assert "omcli.operations.observe.session" in observed["loaded"]
    assert len(observed["loaded"]) <= LOADED, "\n".join(observed["loaded"])


def often_entered(entries: list[str]) -> dict[str, int]:
    """Modules of `operations` that a batch enters more often than it may."""
    entered = Counter(call.split(":")[0] for call in entries if call.startswith("omcli.operations."))
    return {module: times for module, times in entered.items() if times > ENTRIES and module not in ACCESSORS}


def test_a_batch_goes_from_claim_to_record_without_turning_back(observed: dict[str, list[str]]) -> None:
    """Source, observer, sink, rows: each is entered once or twice."""
    assert any(call.startswith("omcli.operations.observe.rows:") for call in observed["entries"])
    assert not often_entered(observed["entries"]), observed["entries"]


def test_rows_go_from_claim_to_fold_without_turning_back(reflected: dict[str, list[str]]) -> None:
    """Source, reflector, sink, rows: each is entered once or twice, however many rows are made."""
    assert "omcli.operations.observe.rows:as_rows" in reflected["entries"]
    assert reflected["entries"].count("omcli.wiring:new_id") > ENTRIES
    assert not often_entered(reflected["entries"]), reflected["entries"]
