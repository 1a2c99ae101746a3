"""The way of a batch through `om observe`: straight, not deep, and through few modules."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from tests.conftest import Om

DEEPEST = 21
"""Calls of our own functions inside each other, at most."""
LOADED = 113
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
    if stack and stack[0].endswith("batches:unobserved") and not recorded:
        claimed = True
        entries.clear()
    if stack and stack[0].endswith("batches:record"):
        recorded = True
    if claimed and not recorded and len(stack) > 1 and stack[0].split(":")[0] != stack[1].split(":")[0]:
        entries.append(stack[0])

def leave(code, leave=os._exit):
    sys.setprofile(None)
    loaded = sorted(module for module in sys.modules if module.startswith("omcli"))
    print(json.dumps({"deepest": deepest[::-1], "entries": entries, "loaded": loaded}), file=sys.stderr, flush=True)
    leave(code)

os._exit, sys.argv = leave, ["om", *sys.argv[1:]]
sys.setprofile(trace)
from omcli.__main__ import main
main()
"""


@pytest.fixture(name="traced", scope="module")
def traced_run(new_om: Callable[[], Om]) -> dict[str, list[str]]:
    """The deepest stack of a run, the calls from module to module while a batch is observed, and the modules loaded."""
    om = new_om()
    om.write("chat.jsonl", "\n".join(json.dumps({"role": role, "content": text}) for role, text in CHAT))
    done = subprocess.run(
        [sys.executable, "-c", TRACED, "observe", "-q", "chat.jsonl"],
        capture_output=True,
        text=True,
        env=om.environment(),
        cwd=om.folder,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stderr.splitlines()[-1])
    return found


def test_observing_a_small_file_is_not_deep(traced: dict[str, list[str]]) -> None:
    """Whoever follows it in a debugger sees the whole stack."""
    assert 8 < len(traced["deepest"]) <= DEEPEST, "\n".join(traced["deepest"])


def test_observing_a_small_file_loads_few_modules(traced: dict[str, list[str]]) -> None:
    assert "omcli.operations.observe.session" in traced["loaded"]
    assert len(traced["loaded"]) <= LOADED, "\n".join(traced["loaded"])


def test_a_batch_goes_from_claim_to_record_without_turning_back(traced: dict[str, list[str]]) -> None:
    """Source, observer, sink, rows: each is entered once or twice."""
    entered = Counter(call.split(":")[0] for call in traced["entries"] if call.startswith("omcli.operations."))
    assert "omcli.operations.observe.rows" in entered
    often = {module: times for module, times in entered.items() if times > ENTRIES and module not in ACCESSORS}
    assert not often, traced["entries"]
