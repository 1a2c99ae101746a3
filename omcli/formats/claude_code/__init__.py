"""Claude Code: session files of the CLI and the VS Code extension, subagents' files, and headless `stream-json`."""

from __future__ import annotations

from collections.abc import Iterator

from omcli.formats.claude_code.reader import LONGEST_NAME, Reading, Session
from omcli.formats.format import Format, Place, by_record
from omcli.formats.source import Record, Sample, Shape
from omcli.formats.values import record, string, text
from omcli.memory.transcript import Carried, Facts, Item, Reason, Skipped

# Bookkeeping of the client. `started` and `result` are a workflow's journal, `result` and `stream_event` also headless.
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


def _is_claude_code(entry: Record) -> bool:
    kind = text(entry.get("type"))
    return (kind in _TOLD or kind in _BOOKKEEPING) and any(mark in entry for mark in _MARKS)


def _sniff(sample: Sample) -> bool:
    if sample.shape not in (Shape.LINES, Shape.DOCUMENT) or not sample.records:
        return False
    # Qwen Code writes the same envelope, but its messages have parts.
    is_qwen = any("parts" in record(entry.get("message")) for entry in sample.records)
    return not is_qwen and sum(map(_is_claude_code, sample.records)) * 2 >= len(sample.records)


class _Records:
    """The records of a file, one by one."""

    def __init__(self, carried: Carried | None) -> None:
        self._session = Session.going_on(carried["session"]) if carried else Session()
        self._reading = Reading.going_on(carried["reading"]) if carried else Reading()

    def items(self, entry: Record) -> Iterator[Item]:
        """What one record tells of the session, and what is said in it."""
        kind = text(entry.get("type"))
        if kind not in _TOLD:
            yield Skipped(Reason.NOISE) if kind in _BOOKKEEPING else Skipped(Reason.UNKNOWN_TYPE, kind[:LONGEST_NAME])
            return
        if changes := self._session.learn(entry, kind):
            yield Facts(**changes)
        cwd = string(entry.get("cwd"))
        yield from self._reading.items(entry, kind, cwd=cwd if cwd != self._session.home else None)

    def end(self) -> Iterator[Item]:
        """Nothing is held back."""
        return iter(())

    def carried(self) -> Carried:
        """All that later records may refer to."""
        return {"session": self._session.carried(), "reading": self._reading.carried()}


FORMAT = Format(
    name="claude-code",
    title="Claude Code",
    sniff=_sniff,
    read=by_record(_Records),
    place=Place(
        homes=("~/.claude", "~/.config/claude"),
        patterns=(
            # Sessions before their subagents: where a session is at home is learnt from the first file of it.
            "projects/*/*.jsonl",
            "projects/*/*/subagents/*.jsonl",
            "projects/*/*/subagents/workflows/*/*.jsonl",
        ),
        variable="CLAUDE_CONFIG_DIR",
    ),
    copies=True,
)
