"""Programs that prune, forget or undo, killed or at it at once: all of it is done or nothing, and run again, all is."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from omcli.memory.batch import BatchOutcome
from tests.conftest import Om
from tests.e2e.background import wait_until
from tests.e2e.contents import Place, connected, copy
from tests.e2e.killing import Killing
from tests.e2e.reflecting import kept as kept_rows
from tests.e2e.scripts import script
from tests.e2e.test_prune import files
from tests.material import COUNTER, NOW, row, said, session

SECRET = "MARIGOLD-4711"
LATER = ("--now", "2026-06-01T12:00:00Z")


@pytest.fixture(scope="module")
def full(new_om: Callable[[], Om]) -> Place:
    """A store of 300 observed messages and 300 rows, 100 of each telling a secret."""
    om = new_om()
    texts = [f"number {n} {SECRET if n % 3 == 0 else 'nothing'} {'x' * 2000}" for n in range(300)]
    with om.open() as store:
        store.messages.append(session(), [said(text, at=NOW) for text in texts], counter=COUNTER, now=NOW)
        batch = store.batches.unobserved("s", max_tokens=10**9)
        assert batch is not None
        rows = [
            row(n, text=text, sources=(kept.seq,))
            for n, (text, kept) in enumerate(zip(texts, batch.messages, strict=True))
        ]
        store.batches.record(batch, rows, outcome=BatchOutcome.OBSERVED, now=NOW)
    return om.place


def made(new_om: Callable[[], Om], full: Place) -> Om:
    om = new_om()
    copy(full, om.place)
    return om


def contents(om: Om) -> dict[str, list[tuple[object, ...]]]:
    """All that matters of a store, whatever number its operations have."""
    with connected(om.place) as store:
        if om.url is None:
            assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert store.execute("PRAGMA foreign_key_check").fetchall() == []
        asked = {
            "rows": "SELECT id, visible, reason FROM observations ORDER BY position",
            "sources": "SELECT observation, message FROM observation_sources ORDER BY 1, 2",
            "messages": "SELECT seq, text FROM messages ORDER BY seq",
            "aside": "SELECT seq, text, erased FROM aside_messages ORDER BY seq",
            "aside rows": "SELECT id, text FROM aside_observations ORDER BY position",
            "tombstones": "SELECT DISTINCT digest FROM tombstones AS t JOIN operations AS o ON o.number = t.operation"
            " WHERE o.undone_by IS NULL ORDER BY 1",
        }
        return {name: store.execute(sql).fetchall() for name, sql in asked.items()}


VERBS: dict[str, tuple[list[str], list[str]]] = {
    "prune": ([], ["prune", "--keep-last", "10"]),
    "prune messages": ([], ["prune", "--raw", "--older-than", "1d"]),
    "forget": ([], ["forget", "--match", SECRET.lower()]),
    "undo": (["forget", "--match", SECRET], ["undo", "1"]),
    "prune for good": ([], ["prune", "--keep-last", "10", "--hard", "--yes"]),
    "forget for good": ([], ["forget", "--match", SECRET, "--hard", "--yes"]),
    "delete": (["forget", "--match", SECRET], ["prune", "--hard", "--yes"]),
}


@pytest.mark.parametrize(
    ("verb", "kills"),
    [("forget for good", 1), *(pytest.param(verb, 4, marks=pytest.mark.soak) for verb in VERBS)],
)
def test_killed_anywhere_and_run_again_it_is_done_as_if_nobody_had_killed_it(
    verb: str, kills: int, full: Place, new_om: Callable[[], Om], chance: random.Random
) -> None:
    """F22: kill -9 at random points; before or after, never between; what is deleted is in no file afterwards."""
    first, command = VERBS[verb]
    undisturbed = made(new_om, full)
    if first:
        undisturbed(*first, *LATER)
    prepared = new_om().place
    copy(undisturbed.place, prepared)
    before = contents(undisturbed)
    killing = Killing(chance=chance)
    killing.undisturbed(undisturbed, *command, *LATER, "-q")
    after = contents(undisturbed)
    assert after != before
    died = 0
    while died < kills:
        om = made(new_om, prepared)
        died += killing.killed(om, *command, *LATER, "-q")
        found = contents(om)
        assert found in (before, after), "all of it or nothing"
        # What is done already is no answer of no: there is nothing of it any more.
        om(*command, *LATER, "-q", code=None)
        assert contents(om) == after
        if "--hard" in command:
            om("prune", "--hard", "--yes", "-q")
            assert (SECRET.encode() in files(om)) is (SECRET.encode() in files(undisturbed))


def test_eight_at_once_prune_each_row_once(full: Place, new_om: Callable[[], Om]) -> None:
    """C20: whoever is late leaves what is out of sight as it is; all of it comes back."""
    om = made(new_om, full)
    before = contents(om)
    runs = [om.start("prune", "--keep-last", str(100 + each), "-q", "--wait", "60") for each in range(8)]
    for run in runs:
        assert run.communicate(timeout=120)[1] == b""
        assert run.returncode == 0
    done = om("history", "--jsonl").lines
    assert sum(each["hidden"] for each in done) == 200
    assert sum(each["figures"]["rows"] for each in done) == 200
    while om("undo", "-q", code=None).code == 0:
        pass
    assert contents(om) == before


def test_a_compaction_that_is_undone_while_it_goes_on_leaves_nothing_that_cannot_be_undone(om: Om) -> None:
    """D6: it folds in two parts; between them it is taken back."""
    seen = [f"the {n}th buoy was seen in the morning, and again late in the evening of that day" for n in range(20, 40)]
    kept_rows(om, *(row(number, text=text) for number, text in enumerate(seen)))
    allowed = [om.folder / f"reply {number}" for number in range(20)]
    model = script(om, *({"text": "echo", "until": path.name} for path in allowed))
    small = {"OM_REFLECT_BATCH_TOKENS": "200"}
    running = om.start("compact", "--session", "s", "--target-tokens", "100", "--model", model.model, env=small)
    for number, path in enumerate(allowed):
        wait_until(lambda: len(model.asked) > number)  # noqa: B023
        if om("undo", code=None).code == 0:
            break  # the first part is written down, and it is at the second
        path.touch()
    for path in allowed:
        path.touch()
    _, told = running.communicate(timeout=60)
    assert (running.returncode, b"undone" in told) == (75, True)
    assert sorted(each["text"] for each in om("log", "--jsonl").lines) == sorted(seen)
    om("undo", code=65)
