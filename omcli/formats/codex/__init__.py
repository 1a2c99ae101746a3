"""Codex CLI: session rollouts, the prompt history, and the output of `codex exec --json`."""

from __future__ import annotations

from collections.abc import Iterator

from omcli.formats import Format, TranscriptFolders, by_record
from omcli.formats.codex.items import CALLS, OUTPUTS, RECORDS, STREAM_TYPES, is_history
from omcli.formats.source import InputShape, Record, Sample
from omcli.formats.values import record, text
from omcli.memory.transcript import Item, ReaderState


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
        if "payload" in entry:
            return self._rollout.items(entry)
        if text(entry.get("type")) in STREAM_TYPES:
            return self._stream.items(entry)
        return self._history.items(entry) if is_history(entry) else self._rollout.items(entry)

    def end(self) -> Iterator[Item]:
        return self._rollout.end()

    def state(self) -> ReaderState | None:
        rollout = self._rollout.state()
        stream, history = self._stream.state(), self._history.session
        return rollout and {"rollout": rollout, "stream": stream, "history": history}


def detect(sample: Sample) -> bool:
    """Return True if at least half of the records are from Codex, or one is a call in its oldest notation."""
    if sample.shape is not InputShape.LINES:
        return False
    known = sum(_is_rollout_record(entry) or _is_plain(entry) for entry in sample.records)
    return 0 < len(sample.records) <= 2 * known or any(map(_is_bare_call, sample.records))


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
