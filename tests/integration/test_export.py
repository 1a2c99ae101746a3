"""Exporting rows of a store: which of them stand together."""

from __future__ import annotations

from omcli.exchange import named
from omcli.memory.batch import BatchOutcome
from omcli.memory.observation import Observation
from omcli.memory.ports import LogQuery
from omcli.operations.export import export
from omcli.tokenizers import counter
from tests.fakes import MemoryStore
from tests.material import COUNTER, NOW, row, row_id, said, session


def exported(*batches: list[Observation], name: str = "pi") -> str:
    """What rows come to that were written in these batches, a message for each batch."""
    store = MemoryStore()
    for number, rows in enumerate(batches):
        store.messages.append(session("s"), [said(f"message {number}")], counter=COUNTER, now=NOW)
        batch = store.batches.unobserved("s", max_tokens=1000)
        assert batch is not None
        store.batches.record(batch, rows, outcome=BatchOutcome.OBSERVED, now=NOW)
    return "".join(export(store, LogQuery(), named(name), counter("chars-4")))


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
