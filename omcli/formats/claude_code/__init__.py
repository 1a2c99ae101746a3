"""Claude Code: session files of the CLI and the VS Code extension, subagents' files, and headless `stream-json`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from omcli.formats import Format, TranscriptFolders, by_record
from omcli.formats.claude_code.reader import LONGEST_NAME, MessageReader, SessionReader
from omcli.formats.source import InputShape, Record, Sample
from omcli.formats.values import record, string, text
from omcli.memory.transcript import Facts, Item, ReaderState, Reason, Skip

# Types of the client's bookkeeping records. `started` and `result` are from a workflow's journal, `result` and
# `stream_event` also from headless runs.
_BOOKKEEPING = frozenset(
    """
    progress summary last-prompt permission-mode mode pr-link file-history-snapshot file-history-delta agent-name
    worktree-state frame-link started result relocated bridge-session atis-latch api-request-blob stream_event
    rate_limit_event cost-state tag continued-in content-replacement task-summary fork-context-ref history-suppression
    artifact-autoreact-ledger artifact-comment-monitor
    """.split()
)
_TOLD = frozenset({"user", "assistant", "system", "attachment", "queue-operation", "ai-title", "custom-title"})
_MARKS = ("sessionId", "parentUuid", "leafUuid", "snapshot", "session_id")


def _is_known_record(entry: Record) -> bool:
    kind = text(entry.get("type"))
    return (kind in _TOLD or kind in _BOOKKEEPING) and any(mark in entry for mark in _MARKS)


def _detect(sample: Sample) -> bool:
    if sample.shape not in (InputShape.LINES, InputShape.DOCUMENT) or not sample.records:
        return False
    # Qwen Code writes similar records, but their messages have `parts`.
    is_qwen = any("parts" in record(entry.get("message")) for entry in sample.records)
    return not is_qwen and sum(map(_is_known_record, sample.records)) * 2 >= len(sample.records)


class _RecordReader:
    def __init__(self, state: ReaderState | None) -> None:
        self._session = SessionReader.resume(state["session"]) if state else SessionReader()
        self._reading = MessageReader.resume(state["reading"]) if state else MessageReader()

    def items(self, entry: Record) -> Iterator[Item]:
        """Yield the session facts that a record changes, then its messages."""
        kind = text(entry.get("type"))
        if kind not in _TOLD:
            is_known = kind in _BOOKKEEPING
            return iter((Skip(Reason.NOISE) if is_known else Skip(Reason.UNKNOWN_TYPE, kind[:LONGEST_NAME]),))
        changes = self._session.learn(entry, kind)
        cwd = string(entry.get("cwd"))
        items = self._reading.items(entry, kind, cwd=cwd if cwd != self._session.home else None)
        return chain((Facts(**changes),), items) if changes else items

    def end(self) -> Iterator[Item]:
        """Yield nothing, because no item is ever held back."""
        return iter(())

    def state(self) -> ReaderState:
        return {"session": self._session.state(), "reading": self._reading.state()}


FORMAT = Format(
    name="claude-code",
    title="Claude Code",
    detect=_detect,
    read=by_record(_RecordReader),
    folders=TranscriptFolders(
        homes=("~/.claude", "~/.config/claude"),
        patterns=(
            # Sessions before their subagents: the first file of a session determines its home directory.
            "projects/*/*.jsonl",
            "projects/*/*/subagents/*.jsonl",
            "projects/*/*/subagents/workflows/*/*.jsonl",
        ),
        variable="CLAUDE_CONFIG_DIR",
    ),
    copies=True,
)
