"""What tools do, under a few canonical names, whatever an agent calls them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from omcli.memory.message import KeptMessage
from omcli.observers.rules.edits import PATCH
from omcli.observers.rules.shell import command_of


class ToolKind(Enum):
    """What a tool does to the world."""

    EDIT = "edit"
    WRITE = "write"
    READ = "read"
    RUN = "run"
    SEARCH = "search"
    TODO = "todo"
    DELEGATE = "delegate"
    PLAN = "plan"
    """Submits a plan for the user's approval."""
    ASK = "ask"
    """Puts a question to the user."""
    REMOTE = "remote"
    """A tool of an MCP server or connector, known by its verb only."""


_NAMES: Mapping[str, ToolKind] = MappingProxyType(
    {
        name: kind
        for kind, names in {
            ToolKind.EDIT: (
                "edit multiedit notebookedit edit_file multi_edit apply_patch patch str_replace "
                "str_replace_editor str_replace_based_edit_tool replace search_replace update_file "
                "file_change"
            ),
            ToolKind.WRITE: "write write_file create_file create write_to_file save_file",
            ToolKind.READ: (
                "read read_file view view_file view_image notebookread open open_file cat webfetch web_fetch fetch "
                "read_many_files"
            ),
            ToolKind.RUN: (
                "bash shell exec_command local_shell local_shell_call run_command run_shell_command "
                "execute_command terminal powershell container.exec execute run run_terminal_cmd "
                "command_execution"
            ),
            ToolKind.SEARCH: (
                "grep glob ls find search list_dir list_directory list_files search_files search_file_content "
                "codebase_search grep_search file_search websearch web_search web_search_call "
                "lsp rg"
            ),
            ToolKind.TODO: (
                "todowrite todo_write write_todos update_plan taskcreate taskupdate todo manage_todo_list todo_list"
            ),
            ToolKind.DELEGATE: "task agent spawn_agent delegate subagent new_task",
            ToolKind.PLAN: "exitplanmode exit_plan_mode",
            ToolKind.ASK: "askuserquestion ask_user_question ask_followup_question request_user_input",
        }.items()
        for name in names.split()
    }
)

_REMOTE = re.compile(r"^mcp__(?P<server>.+?)__(?P<tool>.+)$|^(?P<server2>[\w\-]+)[./:](?P<tool2>[\w\-]+)$")
_LOOKS = re.compile(
    r"^(?:get|list|read|search|find|fetch|query|view|describe|show|lookup|resolve|inspect|check)(?![a-z])",
    re.IGNORECASE,
)


_RUNNING = re.compile(r"\brunning (?:with session ID|in (?:the )?background with ID:?) *([\w-]+)", re.IGNORECASE)
_EXIT_TAG = re.compile(r"<exit_code>(\d{1,9})</exit_code>")
_POLLS = frozenset({"write_stdin", "bashoutput", "taskoutput"})
"""Tools that ask what became of a process."""
_ENDED = re.compile(r"<status>(?:completed|failed|killed)</status>")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEvent:
    """A call with its result: what an extractor sees. `result` is None where the transcript has none for it."""

    kind: ToolKind
    name: str
    call: KeptMessage
    result: KeptMessage | None
    arguments: Mapping[str, object] = field(default_factory=dict)
    """The call's JSON object; empty where the arguments are free text (`raw`)."""
    raw: str = ""

    @property
    def sources(self) -> tuple[int, ...]:
        """`seq` of the call and of its result."""
        return (self.call.seq,) if self.result is None else tuple(sorted({self.call.seq, self.result.seq}))

    @property
    def at(self) -> str | None:
        """When it ended, or began where it did not end."""
        return (self.result.message.at if self.result else None) or self.call.message.at

    @property
    def output(self) -> str:
        """What the tool said."""
        return self.result.message.text if self.result else ""

    @property
    def failed(self) -> bool:
        """Whether it is known to have failed."""
        return bool(self.result and (self.result.message.failed or (self.exit_code or 0) != 0))

    @property
    def exit_code(self) -> int | None:
        """The exit code the transcript gives, if any."""
        if self.result is None:
            return None
        if self.result.message.exit_code is not None:
            return self.result.message.exit_code
        if tagged := _EXIT_TAG.search(self.output[:2000]):
            return int(tagged[1])
        code = _json_object(self.output).get("exit_code", _json_object(self.output).get("exitCode"))
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    @property
    def process(self) -> str | None:
        """The id of the process that the command left running, where it did not end."""
        going_on = _RUNNING.search(self.output[:2000]) if self.kind is ToolKind.RUN else None
        return going_on[1] if going_on and self.exit_code is None else None

    def argument(self, *names: str) -> str:
        """The first of these arguments that is a text, or the empty text."""
        for name in names:
            value = self.arguments.get(name)
            if isinstance(value, str) and value:
                return value
        return ""

    @property
    def looks_only(self) -> bool:
        """REMOTE: whether its name says that it changes nothing."""
        return bool(_LOOKS.match(remote_name(self.name)[1]))


def tool_kind(name: str) -> ToolKind | None:
    """What a tool does, by its name; None for one that nobody knows."""
    known = _NAMES.get(name.lower())
    if known is not None:
        return known
    server, tool = remote_name(name)
    # A server's own "search" or "read_file" does what the word says; its other verbs are its own.
    return _NAMES.get(tool.lower(), ToolKind.REMOTE) if server else None


def remote_name(name: str) -> tuple[str, str]:
    """Server and tool of an MCP tool's name; an empty server for any other."""
    match = _REMOTE.match(name)
    if match is None:
        return "", name
    return match["server"] or match["server2"], match["tool"] or match["tool2"]


def tool_event(call: KeptMessage, result: KeptMessage | None) -> ToolEvent | None:
    """A call and its result as an event; None for a tool nobody knows."""
    name = call.message.tool or ""
    kind = tool_kind(name)
    if kind is None:
        return None
    raw = call.message.text
    arguments = _json_object(raw)
    if kind is ToolKind.RUN and PATCH in raw:
        # A patch handed to a shell is an edit all the same.
        return ToolEvent(kind=ToolKind.EDIT, name=name, call=call, result=result, raw=command_of(arguments, raw))
    return ToolEvent(kind=kind, name=name, call=call, result=result, arguments=arguments, raw=raw)


def polled(call: KeptMessage, result: KeptMessage) -> str | None:
    """The process whose end a call reports; None for another tool, and while the process goes on."""
    if (call.message.tool or "").lower() not in _POLLS:
        return None
    given = _json_object(call.message.text)
    process = next((given[name] for name in ("session_id", "bash_id", "task_id", "shell_id") if name in given), None)
    said = result.message
    ended = said.exit_code is not None or _EXIT_TAG.search(said.text[:2000]) or _ENDED.search(said.text[:2000])
    return str(process) if process is not None and ended else None


def _json_object(text: str) -> Mapping[str, object]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
