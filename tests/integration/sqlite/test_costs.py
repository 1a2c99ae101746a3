"""What operations and images cost grows with how many there are, and not with the square of that."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.message import Image
from omcli.memory.observation import Dropped, Kind, LogQuery
from omcli.memory.reflection import ReflectionOutcome, ReflectionWrite, Scope, fingerprint
from omcli.operations.context import Place, context
from omcli.pack.budget import Budgets, Tier
from omcli.sqlite import SqliteStore, messages
from omcli.tokenizers import APPROXIMATE
from tests.material import COUNTER, LATER, NOW, row, row_id, said, session


def steps(store: SqliteStore, act: Callable[[sqlite3.Connection], object]) -> int:
    """How many hundreds of steps SQLite takes for something."""
    connection, taken = store.database.connection, 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(count, 100)
    act(connection)
    connection.set_progress_handler(None, 0)
    return taken


def with_operations(path: Path, number: int) -> SqliteStore:
    """A store with so many reflections, of each of which a row was forgotten."""
    store = SqliteStore.open(path, wait=1)
    for at in range(number):
        old, made = row(2 * at), row(2 * at + 1, kind=Kind.REFLECTION, supports=(row_id(2 * at),))
        store.rows.add(old)
        store.reflections.fold(
            ReflectionWrite(
                scope=Scope(session="s"), fingerprint=fingerprint([old]), ending=ReflectionOutcome.DONE, read=(old.id,),
                rows=(made,), dropped=(Dropped(row=old.id, reason="told"),),
            ),
            now=NOW,
        )  # fmt: skip
    everything = tuple(row_id(at) for at in range(2 * number))
    store.operations.change(OperationWrite(verb=OperationKind.FORGET, forgotten=everything), now=LATER)
    return store


def test_the_history_costs_as_much_as_it_is_long(tmp_path: Path) -> None:
    with with_operations(tmp_path / "few.db", 40) as few, with_operations(tmp_path / "many.db", 400) as many:
        assert (few.operations.history()[1].made, many.operations.history()[-1].made) == (1, 1), (
            "rows that are aside count as well"
        )
        assert steps(many, lambda _: many.operations.history()) <= 15 * steps(few, lambda _: few.operations.history())


@pytest.mark.parametrize("project", [None, "/p"])
def test_rows_that_no_observer_wrote_are_found_among_any_number_of_others(tmp_path: Path, project: str | None) -> None:
    """A pack of all projects, or of one, looks for the last notes and reflections, and often there is none."""
    query = LogQuery(project=project, last=5, kinds=(Kind.NOTE, Kind.REFLECTION, Kind.ITEM))
    with SqliteStore.open(tmp_path / "om.db", wait=1) as store:
        store.rows.add(row(0, kind=Kind.NOTE, project="/p"))
        for number in range(1, 2_000):
            store.rows.add(row(number, project="/p"))
        assert steps(store, lambda _: [each.observation.id for each in store.rows.log(query)]) <= 5
        assert [each.observation.id for each in store.rows.log(query)] == [row_id(0)]


def test_a_tier_that_is_left_out_of_a_pack_is_not_read(tmp_path: Path) -> None:
    """`om context --tier tail` reads no rows."""
    with SqliteStore.open(tmp_path / "om.db", wait=1) as store:
        store.messages.append(session(), [said("hello")], counter=COUNTER, now=NOW)
        store.rows.add(row(1))
        read: list[str] = []
        store.database.connection.set_trace_callback(read.append)
        for only in (Tier.TAIL, Tier.SESSION):
            tiers = {tier: 1_000 if tier is only else 0 for tier in Tier}
            limits = Budgets(total=1_000, cross=0, session=tiers[Tier.SESSION], tail=tiers[Tier.TAIL])
            read.clear()
            context(store, Place(project="/p", session="s"), budgets=limits, counter=APPROXIMATE, now=NOW)
            assert any("FROM observations" in each for each in read) is (only is Tier.SESSION)


def test_letting_images_go_reads_what_waits_once(tmp_path: Path) -> None:
    def picture(number: int) -> Image:
        content = str(number).encode()
        return Image(media_type="image/png", size=4, sha256=sha256(content).hexdigest(), content=content)

    seen = tuple(picture(number) for number in range(20))
    with SqliteStore.open(tmp_path / "om.db", wait=1) as store:
        waiting = [said(f"m {number}", images=(picture(100),)) for number in range(500)]
        store.messages.append(session(), waiting, counter=COUNTER, now=NOW)
        messages.keep_images(store.database.connection, [said("covered", images=seen).message])

        def let_go(*those: Image) -> int:
            return steps(store, lambda connection: messages.drop_images(connection, [image.sha256 for image in those]))

        one = let_go(seen[0])
        assert let_go(*seen[1:], picture(100)) <= 2 * one
        kept = [image for image in (*seen, picture(100)) if store.messages.image(image.sha256)]
        assert kept == [picture(100)], "what waits keeps its own"
