"""Any reply gives valid rows or none."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import CutOff, ProviderFailed
from omcli.llm.model import EndReason, Reply
from omcli.llm.replies import LONGEST_ROW
from omcli.memory.batch import Batch, Observed
from omcli.memory.message import KeptMessage
from omcli.memory.observation import Draft, Observation, Source, Type
from omcli.observers.model.transcript import ObserverLimits
from omcli.observers.rules import RuleObserver
from omcli.text.clean import clean, one_line
from omcli.tokenizers import counter
from tests.fakes import ScriptedModel
from tests.replying import observer
from tests.strategies import examples, kept_messages, observations, texts

_LABELS = st.sampled_from(["m1", "m2", "m3", "m7", "M1", "[m2]", "o1", "o2", "x", ""])
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_TIMES = st.sampled_from(["2026-02-10 14:32", "2026-02-10 14:33", "1969-01-01 00:00", "9999-99-99 99:99", "14:32", ""])
_ROWS = st.fixed_dictionaries(
    {"text": texts, "sources": st.lists(_LABELS, max_size=3)},
    optional={
        "priority": st.sampled_from(["high", "medium", "low", "HIGH", "x"]) | _ANYTHING,
        "kind": st.sampled_from(["decision", "fact", "task", "error", "identity", "x"]) | _ANYTHING,
        "status": st.sampled_from(["open", "done", "resolved"]) | _ANYTHING,
        "at": _TIMES | _ANYTHING,
        "refers_to": st.sampled_from(["2026-02-30", "2026-02", "0000-01", "2026-12-31"]) | _ANYTHING,
        "refers_to_kind": st.sampled_from(["exact", "estimated"]) | _ANYTHING,
        "replaces": st.lists(_LABELS, max_size=3) | _ANYTHING,
        "under": st.integers(-2, 70) | _ANYTHING,
    },
)
_REPLIES = st.fixed_dictionaries(
    {"observations": st.lists(_ROWS | _ANYTHING, max_size=6) | st.lists(_ROWS, min_size=1, max_size=70)},
    optional=dict.fromkeys(("current_task", "next_step", "title"), texts | _ANYTHING)
    | {"used": st.lists(_LABELS, max_size=4) | _ANYTHING},
)


@st.composite
def _lists(draw: st.DrawFn) -> str:
    """Replies in text, more or less as they should be."""
    marks = st.sampled_from(
        ["- ", "* 🔴 (14:32) ", "[2026-02-10 14:32] NOTE done: ", "  * -> ", "", "Date: 2026-02-10\n"]
    )
    lines = [draw(marks) + draw(texts) for _ in range(draw(st.integers(0, 8)))]
    tags = draw(st.sampled_from(["{}", "<observations>\n{}\n</observations>", "<observations>{}<current-task>x"]))
    return tags.replace("{}", "\n".join(lines))


_WRITTEN = _REPLIES.map(json.dumps) | _lists() | texts | _ANYTHING.map(json.dumps)


@st.composite
def _batches(draw: st.DrawFn) -> Batch:
    messages: tuple[KeptMessage, ...] = draw(kept_messages(max_size=8).filter(bool))
    standing = draw(st.lists(observations(session=st.just("s1")), max_size=3, unique_by=lambda row: row.id))
    split = draw(st.integers(0, len(messages) - 1))
    before, new = messages[:split], messages[split:]
    batch = Batch(session="s1", after=0, through=new[-1].seq, messages=new, context_rows=tuple(standing), cwd="/p")
    return replace(batch, last_said=before[-1]) if before else batch


@examples(200)
@given(_batches(), st.lists(_WRITTEN, min_size=1, max_size=2), st.booleans(), st.sampled_from([40, 8_000]))
def test_any_reply_gives_valid_rows_or_none(batch: Batch, replies: list[str], verify: bool, output: int) -> None:
    """T20, T21, F3, F40, V1 to V5, V10: either ProviderFailed, or rows that can be stored as they are."""
    model = ScriptedModel(*replies)
    options = {"rules": RuleObserver(), "verify": verify, "limits": ObserverLimits(output=output)}
    try:
        result = observer(model, **options).observe(batch)
    except ProviderFailed:
        assert len(model.asked) <= 2
        return
    assert len(model.asked) <= 3
    _check(result, batch, output)


def _check(result: Observed, batch: Batch, output: int) -> None:
    rows = _written_by_model(result, batch)
    for draft in rows:
        _check_row(draft, batch)
    assert len(rows) <= 61
    size = counter("chars-4").text("\n".join(draft.text for draft in rows if draft.type is not Type.TASK))
    assert size <= output
    standing = {row.id: row for row in batch.context_rows}
    assert set(result.used) <= standing.keys()
    assert result.title is None or 3 <= len(result.title) <= 60
    assert all(count > 0 for count in result.findings.values())


def _written_by_model(result: Observed, batch: Batch) -> list[Draft]:
    """Rows taken from the reply, without the copies by which rules settle a model's earlier row."""
    earlier = {row.id: row.text for row in batch.context_rows}
    return [
        draft
        for draft in result.drafts
        if draft.source is Source.MODEL and draft.text not in (earlier[replaced] for replaced in draft.replaces)
    ]


def _check_row(draft: Draft, batch: Batch) -> None:
    shown = [*batch.messages, *([batch.last_said] if batch.last_said else [])]
    seqs = {kept.seq for kept in batch.messages}
    assert draft.text
    assert draft.text == one_line(clean(draft.text))
    assert len(draft.text) <= LONGEST_ROW + 500
    assert 0 <= draft.importance <= 10
    # A current task may be what the user said before the batch, as an older row has it.
    older = {seq for row in batch.context_rows for seq in row.sources if draft.type is Type.TASK}
    assert set(draft.sources) <= older.union(kept.seq for kept in shown)
    assert set(draft.sources) & seqs
    assert list(draft.sources) == sorted(set(draft.sources))
    assert draft.event_at in {None, *(kept.message.at for kept in shown)}
    standing = {row.id: row for row in batch.context_rows}
    assert all(_may_go(standing[row], draft) for row in draft.replaces)


def _may_go(row: Observation, draft: Draft) -> bool:
    return "current" in row.tags if draft.type is Type.TASK and "current" in draft.tags else row.is_mutable


@given(_batches(), _WRITTEN)
def test_what_was_cut_off_is_never_kept(batch: Batch, text: str) -> None:
    """F4, V6."""
    model = ScriptedModel(Reply(text=text, stop=EndReason.LENGTH, model="scripted-1"))
    try:
        result = observer(model, rules=RuleObserver()).observe(batch)
    except CutOff:
        assert len(model.asked) == 1
    else:
        assert not model.asked
        assert not _written_by_model(result, batch)
