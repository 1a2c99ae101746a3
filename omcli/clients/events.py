"""Events of each client, the JSON that it passes to a hook, and the JSON that it wants back.

A client is a line in each table. Every hook loads this module, so it imports little.
"""

import os
from enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Moment(StrEnum):
    """Moments of a session at which clients run hooks."""

    START = "start"
    """A session begins, or goes on with a context that has lost something. The agent is given a pack."""
    PROMPT = "prompt"
    """A person has written a prompt. The agent may be given rows that match it."""
    TOOL = "tool"
    """A tool has been used."""
    STOP = "stop"
    """The agent has finished its turn."""
    COMPACT = "compact"
    """The client is about to compact the context."""
    END = "end"


_HOOKS = {
    "SessionStart": Moment.START, "UserPromptSubmit": Moment.PROMPT, "PostToolUse": Moment.TOOL, "Stop": Moment.STOP,
    "SubagentStop": Moment.STOP, "PreCompact": Moment.COMPACT, "SessionEnd": Moment.END,
}  # fmt: skip
EVENTS: "Mapping[str, Mapping[str, Moment]]" = {
    "claude-code": _HOOKS,
    "codex": _HOOKS,
    "pi": {
        "before_agent_start": Moment.START, "session_before_compact": Moment.COMPACT, "agent_settled": Moment.STOP,
        "session_shutdown": Moment.END,
    },
    "opencode": {
        "experimental.chat.system.transform": Moment.START, "experimental.session.compacting": Moment.COMPACT,
        "session.idle": Moment.STOP, "session.deleted": Moment.END,
    },
    "gemini": {
        "SessionStart": Moment.START, "BeforeAgent": Moment.PROMPT, "AfterTool": Moment.TOOL, "AfterAgent": Moment.STOP,
        "PreCompress": Moment.COMPACT, "SessionEnd": Moment.END,
    },
    "cursor": {
        "sessionStart": Moment.START, "beforeSubmitPrompt": Moment.PROMPT, "postToolUse": Moment.TOOL,
        "stop": Moment.STOP, "preCompact": Moment.COMPACT, "sessionEnd": Moment.END,
    },
}  # fmt: skip
"""The events of each client at which `om` does something."""
_SESSION = ("session_id", "sessionId", "conversation_id")
_TRANSCRIPT = ("agent_transcript_path", "transcript_path", "transcriptPath")
_EVENT = ("hook_event_name", "hookEventName")


class HookCall:
    """A client's call of a hook. It is a plain class, because a hook does not wait until records are loaded."""

    def __init__(
        self,
        *,
        client: str,
        event: str,
        session: str | None = None,
        transcript: str | None = None,
        folder: str | None = None,
        source: str | None = None,
        prompt: str | None = None,
    ) -> None:
        """`event` is the client's name for the event, `transcript` a path, `folder` the client's working directory, and
        `source` says how a session starts: startup, resume, clear, compact or fork.
        """
        self.client, self.event, self.moment = client, event, EVENTS[client][event]
        self.session, self.transcript, self.folder = session, transcript, folder
        self.source, self.prompt = source, prompt

    @property
    def is_new(self) -> bool:
        """True at the start of a session, unless it is resumed or was compacted: then it may have rows."""
        return self.moment is Moment.START and self.source not in ("resume", "compact")

    @property
    def follows_compact(self) -> bool:
        """True if a session goes on after its context was compacted."""
        return self.source == "compact"


class BadCall(Exception):
    """A call that cannot be understood, with the reason."""


def call(client: str, given: object) -> HookCall:
    """Return the call for the JSON that a client passes to a hook. Raise BadCall if the client or the event is unknown,
    or the JSON is not an object.
    """
    events = EVENTS.get(client)
    if events is None:
        raise BadCall(f"unknown client `{client}` (expected one of {', '.join(EVENTS)})")
    if not isinstance(given, dict):
        raise BadCall("stdin is not a JSON object")
    event = _text(given, *_EVENT)
    if event is None or event not in events:
        raise BadCall(f"unknown event `{event:.40}`" if event else "stdin names no event")
    folders = given.get("workspace_roots")
    return HookCall(
        client=client,
        event=event,
        session=_text(given, *_SESSION),
        transcript=_path(_text(given, *_TRANSCRIPT)),
        folder=_path(_text(given, "cwd") or (str(folders[0]) if isinstance(folders, list) and folders else None)),
        source=_text(given, "source"),
        prompt=_text(given, "prompt"),
    )


def _text(given: "Mapping[str, Any]", *keys: str) -> str | None:
    return next((value for key in keys if isinstance(value := given.get(key), str) and value), None)


def _path(text: str | None) -> str | None:
    """Return the text if it can be a path, otherwise None."""
    try:
        return None if text is None or b"\0" in os.fsencode(text) else text
    except UnicodeEncodeError:
        return None


def of_retired(words: "Sequence[str]") -> str | None:
    """Return the client that a command line is for, if it is a hook of the retired program `om` (the distribution
    `observational-memory`), and None for other lines.
    """
    if words[:1] in (["claude-checkpoint"], ["codex-checkpoint"]):
        return "codex" if words[0].startswith("codex") else "claude-code"
    if words[:1] == ["context"] and "--cwd" in words and "--for" in words[:-1]:
        return "codex" if words[words.index("--for") + 1] == "codex" else "claude-code"
    return None


def answer(asked: HookCall, text: str) -> object:
    """Return the answer that gives a client this text on stdout: an object to print as JSON, or the text itself. At
    a compaction, pi gets `compact: true` instead of the text.
    """
    if asked.client == "pi" and asked.moment is Moment.COMPACT:
        return {"compact": True}
    if asked.client in ("pi", "opencode"):
        return {"context": text}
    if asked.client == "cursor":
        return {"additional_context": text}
    if asked.moment is Moment.COMPACT:
        return text
    return {"hookSpecificOutput": {"hookEventName": asked.event, "additionalContext": text}}


def start_event(client: str) -> str:
    """Return the client's name of the event at which a session starts."""
    return next(event for event, moment in EVENTS[client].items() if moment is Moment.START)


def takes_text(asked: HookCall) -> bool:
    """Return True if the client gives an answer at this event to its agent."""
    if asked.moment is Moment.COMPACT:
        return asked.client in ("claude-code", "opencode", "pi")
    return asked.moment in (Moment.START, Moment.PROMPT)
