"""Exporting rows of a store: which of them stand together."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base import ignore
from omcli.exchange import named
from omcli.memory.batch import BatchOutcome
from omcli.memory.observation import Kind, LogQuery, Observation
from omcli.memory.ports import Store
from omcli.observers.rules import RuleObserver
from omcli.operations.clock import Clock
from omcli.operations.deps import Deps
from omcli.operations.export import export
from omcli.operations.importing import ImportInput, import_files
from omcli.reflectors.rules import RuleReflector
from omcli.sqlite import SqliteStore
from omcli.text.clean import single_line
from omcli.tokenizers import counter
from tests.fakes import MemoryStore
from tests.fakes.deps import by_observer, by_reflector
from tests.material import COUNTER, NOW, row, row_id, said, session
from tests.strategies import examples, observations, texts


def exported(*batches: list[Observation], name: str = "pi") -> str:
    """What rows come to that were written in these batches, a message for each batch."""
    store = MemoryStore()
    for number, rows in enumerate(batches):
        store.messages.append(session("s"), [said(f"message {number}")], counter=COUNTER, now=NOW)
        batch = store.batches.unobserved("s", max_tokens=1000)
        assert batch is not None
        store.batches.record(batch, rows, outcome=BatchOutcome.OBSERVED, now=NOW)
    return exported_from(store, name)


def exported_from(store: Store, name: str) -> str:
    """All rows of a store in a format."""
    return "".join(export(store, LogQuery(), named(name), counter("chars-4")))


def deps_of(store: Store) -> Deps:
    """What imports into a store."""
    ids, tokens = count(1), counter("chars-4")
    return Deps(
        open_store=lambda: store,
        counter=tokens,
        observer=by_observer(RuleObserver()),
        reflector=by_reflector(RuleReflector(tokens)),
        clock=Clock(NOW),
        new_id=lambda: row_id(next(ids)),
        owner="test",
        wait=0,
    )


def detail(number: int, text: str, under: int) -> Observation:
    """A row that names the row of another number as the one that it is a detail of."""
    return row(number, text=text, metadata={"under": row_id(under)})


def test_a_detail_stands_below_its_row() -> None:
    """S3.7: children are rows with a parent; one whose parent stands elsewhere stands for itself."""
    first = [row(1, text="The port is 8443"), row(2, text="Never main"), detail(3, "since May", 1)]
    text = exported(first, [detail(4, "on Fridays", 2)])
    lines = [line for line in text.splitlines() if "- " in line]
    assert [line.replace("[?] 10:00 ", "") for line in lines] == [
        "- The port is 8443",
        "  - since May",
        "- Never main",
        "- on Fridays",
    ]


def test_a_row_is_no_detail_of_itself_or_of_a_later_one() -> None:
    text = exported([detail(1, "a", 2), row(2, text="b"), detail(3, "c", 3)])
    assert "  -" not in text


def test_rows_of_one_batch_are_one_group() -> None:
    """C2: a batch rebuilds its block; what two batches gave are two."""
    text = exported([row(1, text="a"), row(2, text="b")], [row(3, text="c")], name="zora-jsonl")
    assert len(text.splitlines()) == 2


STATED = st.builds(
    replace,
    observations(session=st.sampled_from(["s", "t", None]), kinds=(Kind.OBSERVATION, Kind.REFLECTION, Kind.NOTE)),
    project=st.sampled_from(["/tide", "/moon"]),
    message_ids=st.just(()),
    sources=st.just(()),
    superseded_by=st.none(),
    text=texts.filter(lambda text: bool(single_line(text).strip())),
)


@given(rows=st.lists(STATED, max_size=6))
@examples(40)
@pytest.mark.parametrize("name", ["pi", "zora", "zora-jsonl", "duet-groups", "duet-headings"])
def test_what_an_import_stored_is_exported_to_the_byte(name: str, rows: list[Observation]) -> None:
    """XD4, XD5, T74: whatever rows hold, whatever their session and project, a second trip changes nothing."""
    with SqliteStore.temporary() as first, SqliteStore.temporary() as second:
        for number, each in enumerate(rows):
            first.rows.add(replace(each, id=row_id(number)))
        text = exported_from(first, name)
        reports = list(
            import_files(
                [ImportInput(name="x", read=lambda: text)], named(name), deps_of(second), session=None, project="/tide",
                each=ignore,
            )
        )  # fmt: skip
        assert [(report.error, dict(report.skipped)) for report in reports] == [(None, {})]
        again = exported_from(second, name)
    if not reports[0].known and not reports[0].redactions:
        assert again == text
