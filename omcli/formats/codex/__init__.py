"""Codex CLI: session rollouts, prompt history and output of `codex exec --json`; also items of the Responses API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from omcli.formats import Format, TranscriptFolders, by_record
from omcli.formats.codex.items import CALLS, OUTPUTS, RECORDS, STREAM_TYPES, is_history
from omcli.formats.source import InputShape, Record, Sample
from omcli.formats.values import objects, record, string, text
from omcli.memory.transcript import Facts, Item, ReaderState, Reason, Skip


class _RecordReader:
    """Passes each record to the reader for rollouts, the prompt history or `codex exec` output."""

    def __init__(self, state: ReaderState | None) -> None:
        # Imported only here, because detection tries this format on every file and few files have it.
        from omcli.formats.codex.rollout import Rollout  # noqa: PLC0415
        from omcli.formats.codex.stream import History, StreamReader  # noqa: PLC0415

        self._rollout = Rollout.resume(state["rollout"]) if state else Rollout()
        self._stream = StreamReader.resume(state["stream"]) if state else StreamReader()
        self._history = History(state["history"] if state else None)

    def items(self, entry: Record) -> Iterator[Item]:
        if (conversation := _conversation(entry)) is not None:
            return chain(_facts(entry), chain.from_iterable(map(self._part, conversation)))
        if "payload" in entry:
            return self._rollout.items(entry)
        if text(entry.get("type")) in STREAM_TYPES:
            return self._stream.items(entry)
        return self._history.items(entry) if is_history(entry) else self._rollout.items(entry)

    def _part(self, item: object) -> Iterator[Item]:
        return self._rollout.items(item) if isinstance(item, dict) else iter([Skip(Reason.NOT_AN_OBJECT)])

    def end(self) -> Iterator[Item]:
        return self._rollout.end()

    def state(self) -> ReaderState | None:
        rollout = self._rollout.state()
        stream, history = self._stream.state(), self._history.session
        return rollout and {"rollout": rollout, "stream": stream, "history": history}


def detect(sample: Sample) -> bool:
    """Return True if at least half of the records are from Codex, or if one is a call in Codex's oldest notation or a
    request to the Responses API.

    A JSON list must contain items of that API instead (see `_are_items`).
    """
    records = sample.records
    if sample.shape is InputShape.DOCUMENT and sample.is_list:
        return _are_items(records) and any("type" in entry for entry in records)
    if any(_conversation(entry) is not None for entry in records):
        return True
    known = sum(_is_rollout_record(entry) or _is_plain(entry) for entry in records)
    is_known = 0 < len(records) <= 2 * known or any(map(_is_bare_call, records))
    return sample.shape is InputShape.LINES and is_known


def _conversation(entry: Record) -> list[object] | None:
    """Return the items of a request to the Responses API and of its response, or None for other objects."""
    given, answered = entry.get("input"), entry.get("output")
    if "type" in entry or not (isinstance(given, list) or isinstance(answered, list)):
        return None
    first = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
    items = [*(first if isinstance(first, list) else ()), *(answered if isinstance(answered, list) else ())]
    return items if _are_items(objects(items)) else None


def _facts(entry: Record) -> Iterator[Item]:
    if model := string(entry.get("model")):
        yield Facts(model=model)


def _are_items(entries: Sequence[Record]) -> bool:
    """Return True if at least half of the objects are items of the Responses API, and one can be nothing else."""
    known = sum(_is_bare_item(entry, text(entry.get("type"))) or _is_short_message(entry) for entry in entries)
    return 0 < len(entries) <= 2 * known and any(map(_is_call_or_part, entries))


def _is_short_message(entry: Record) -> bool:
    return "type" not in entry and "role" in entry and "content" in entry


def _is_call_or_part(entry: Record) -> bool:
    kind = text(entry.get("type"))
    parts = objects(entry.get("content")) if kind in ("", "message") else []
    is_call = (kind in CALLS or kind in OUTPUTS) and "call_id" in entry
    return is_call or any(part.get("type") in ("input_text", "output_text") for part in parts)


def _is_rollout_record(entry: Record) -> bool:
    return isinstance(entry.get("payload"), dict) and text(entry.get("type")) in RECORDS


def _is_plain(entry: Record) -> bool:
    kind = text(entry.get("type"))
    return kind in STREAM_TYPES or is_history(entry) or _is_bare_item(entry, kind)


def _is_bare_item(entry: Record, kind: str) -> bool:
    """Return True for a record of the oldest rollouts: a bare item of the Responses API, or a bookkeeping record."""
    if kind == "message":
        return "role" in entry and "content" in entry
    if kind in CALLS or kind in OUTPUTS:
        return "call_id" in entry
    if kind == "reasoning":
        return "summary" in entry
    return "record_type" in entry or entry.keys() >= {"id", "timestamp", "instructions"}


def _is_bare_call(entry: Record) -> bool:
    return entry.get("type") == "tool_call" and "name" in record(entry.get("function")) and "timestamp" in entry


FORMAT = Format(
    name="codex",
    title="Codex CLI",
    detect=detect,
    read=by_record(_RecordReader),
    folders=TranscriptFolders(
        homes=("~/.codex",),
        patterns=("sessions/*/*/*/rollout-*.jsonl", "archived_sessions/*.jsonl"),
        variable="CODEX_HOME",
    ),
    copies=True,
)
