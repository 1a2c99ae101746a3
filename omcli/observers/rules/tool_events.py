"""Tool calls and their results, classified by effect, and the file changes that they request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType

from omcli.base import lazily
from omcli.base.record import field, positional_record, record
from omcli.memory.message import KeptMessage, Message, Role
from omcli.memory.observation import Draft, Observation, Priority, Status, Type
from omcli.observers.rules import shell
from omcli.text.clean import below, one_line

PATCH = "*** Begin Patch"
_PATCH_FILE = lazily(r"^\*\*\* (Add|Update|Delete) File: (.+)$")
_PATCH_MOVE = lazily(r"^\*\*\* Move to: (.+)$")


@record
class FileChange:
    """A replacement of `old` with `new` in a file.

    `old` is empty for a created file, and `new` for a deleted one. Both are empty if the tool gives only the path.
    """

    path: str
    old: str = ""
    new: str = ""
    creates: bool = False
    deletes: bool = False
    moved_to: str = ""


def changed_files(arguments: Mapping[str, object], raw: str) -> list[FileChange]:
    """Return the file changes that an edit tool's arguments request, or a patch in place of them (`raw`). The list is
    empty if they are not recognised.
    """
    patch = next(filter(None, map(arguments.get, ("patch", "patchText", "input", "diff"))), raw)
    if isinstance(patch, str) and PATCH in patch:
        return list(_parse_changes(patch))
    if isinstance(listed := arguments.get("changes"), list):
        named = [(part.get("path"), part.get("kind")) for part in listed if isinstance(part, dict)]
        return [
            FileChange(path=path, creates=kind == "add", deletes=kind == "delete")
            for path, kind in named
            if isinstance(path, str)
        ]
    path = _first_text(
        arguments, "file_path", "path", "filePath", "filename", "notebook_path", "target_file", "absolute_path"
    )
    if not path:
        return []
    edits = arguments.get("edits")
    parts = [part for part in edits if isinstance(part, dict)] if isinstance(edits, list) else [arguments]
    return [
        FileChange(
            path=path,
            old=_first_text(part, "old_string", "oldString", "oldText", "old_str", "old_text", "search"),
            new=_first_text(
                part,
                "new_string",
                "newString",
                "newText",
                "new_str",
                "new_text",
                "replace",
                "content",
                "contents",
                "new_source",
                "file_text",
            ),
        )
        for part in parts
    ]


def _parse_changes(patch: str) -> Iterator[FileChange]:
    verb, path, moved = "", "", ""
    old: list[str] = []
    new: list[str] = []

    def change() -> Iterator[FileChange]:
        if path:
            creates, deletes = verb == "Add", verb == "Delete"
            texts = {"old": "\n".join(old), "new": "\n".join(new)}
            yield FileChange(path=path, creates=creates, deletes=deletes, moved_to=moved, **texts)

    for line in patch.splitlines():
        if heading := _PATCH_FILE.match(line):
            yield from change()
            verb, path, moved = heading[1], heading[2].strip(), ""
            old, new = [], []
        elif move := _PATCH_MOVE.match(line):
            moved = move[1].strip()
        elif line.startswith("-"):
            old.append(line[1:])
        elif line.startswith("+"):
            new.append(line[1:])
    yield from change()


def _first_text(arguments: Mapping[str, object], *names: str) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


class ToolKind(Enum):
    """Kinds of tools by their effect."""

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
    """Asks the user a question."""
    REMOTE = "remote"
    """An unknown tool of an MCP server or connector. The verb at the start of its name shows if it is read-only."""


_KINDS_BY_NAME: Mapping[str, ToolKind] = MappingProxyType(
    {
        name: kind
        for kind, names in {
            ToolKind.EDIT: (
                "edit multiedit notebookedit edit_file multi_edit apply_patch patch str_replace "
                "str_replace_editor str_replace_based_edit_tool replace search_replace update_file "
                "file_change strreplace applypatch editnotebook"
            ),
            ToolKind.WRITE: "write write_file create_file create write_to_file save_file",
            ToolKind.READ: (
                "read read_file view view_file view_image notebookread open open_file cat webfetch web_fetch fetch "
                "read_many_files"
            ),
            ToolKind.RUN: (
                "bash shell shell_command exec_command local_shell local_shell_call run_command run_shell_command "
                "run_in_terminal run_terminal_command execute_bash executebash "
                "execute_command terminal powershell container.exec execute run run_terminal_cmd "
                "command_execution"
            ),
            ToolKind.SEARCH: (
                "grep glob ls find search list_dir list_directory list_files search_files search_file_content "
                "codebase_search grep_search grep_files multi_grep file_search websearch web_search web_search_call "
                "lsp rg list codesearch semanticsearch google_web_search"
            ),
            ToolKind.TODO: (
                "todowrite todo_write write_todos update_plan taskcreate taskupdate todo manage_todo_list todo_list "
                "update_todo"
            ),
            ToolKind.DELEGATE: "task agent spawn_agent delegate subagent new_task delegate_to_agent",
            ToolKind.PLAN: "exitplanmode exit_plan_mode",
            ToolKind.ASK: "askuserquestion ask_user_question ask_followup_question request_user_input "
            "ask_user question askquestion",
        }.items()
        for name in names.split()
    }
)

_EDITOR_COMMANDS = {"view": ToolKind.READ, "create": ToolKind.WRITE}
"""Commands of `str_replace_editor` that do not edit."""
_REMOTE = lazily(r"^mcp__(?P<server>.+?)__(?P<tool>.+)$|^(?P<server2>[\w\-]+)[./:](?P<tool2>[\w\-]+)$")
_READ_ONLY_VERB = lazily(
    r"^(?:get|list|read|search|find|fetch|query|view|describe|show|lookup|resolve|inspect|check)(?![a-z])",
    re.IGNORECASE,
)


_RUNNING = lazily(r"\brunning (?:with session ID|in (?:the )?background with ID:?) *([\w-]+)", re.IGNORECASE)
_SUBAGENT_LAUNCHED = lazily(r"^Async agent launched\b.{0,200}?\bagentId: *([\w-]+)", re.IGNORECASE | re.DOTALL)
_EXIT_TAG = lazily(r"<exit_code>(\d{1,9})</exit_code>")
_RETURN_CODE = lazily(r"\s*<returncode>\d")
_POLLS = frozenset({"write_stdin", "bashoutput", "taskoutput"})
"""Tools that poll a running process."""
_PROCESS_ENDED = lazily(r"<status>(?:completed|failed|killed)</status>")
_REPORT = lazily(r"<output>\n?(.*?)(?:</output>|\Z)", re.DOTALL)
# First words of a failed tool's output, for transcripts that do not mark failures.
_SAYS_FAILED = lazily(
    r"\s*+(?!(?:ok|done|success|edited|updated|modified|created|wrote|written|replaced|the file)\b)"
    r"(?:<tool_use_error>|(?:tool )?(?:error|failed|failure|exception)\b|traceback \(|"
    r"(?:could|can|did|does|was|is) ?not\b|cannot\b|can't\b|unable to\b|invalid\b|no such file|permission denied|"
    r"[^\n]{0,60}\bnot (?:found|unique)\b|no match(?:es)? (?:found )?for\b)",
    re.IGNORECASE,
)
_SAYS_RUN_FAILED = lazily(r"\s*(?:<tool_use_error>|(?:tool )?(?:execution )?(?:Error|error|failed|exception):)")
_JSON_OUTPUT = ("stdout", "output", "stderr", "error")
"""Keys for printed text in a JSON result, with errors last."""
_QUIET_KINDS = frozenset({ToolKind.EDIT, ToolKind.WRITE, ToolKind.TODO})
"""Kinds of tools whose output only reports success or failure."""


@record
class ToolEvent:
    """A tool call and its result. `result` is None if the transcript has none."""

    kind: ToolKind
    name: str
    call: KeptMessage
    result: KeptMessage | None
    arguments: Mapping[str, object] = field(default_factory=dict)
    """The call's JSON object, or empty if the arguments are free text (`raw`)."""
    raw: str = ""
    output: str = ""
    """Text returned by the tool, without JSON or tags around it."""
    reply: Mapping[str, object] = field(default_factory=dict)
    """The result's JSON object, or empty if the result is not one."""
    command: str = ""
    """Command line of a run tool, otherwise empty."""
    exit_code: int | None = None
    process: str | None = None
    """Id of the process or subagent that the call left running, if any."""

    @property
    def sources(self) -> tuple[int, ...]:
        """`seq` of the call and of its result."""
        return (self.call.seq,) if self.result is None else tuple(sorted({self.call.seq, self.result.seq}))

    @property
    def at(self) -> str | None:
        """Time of the result, or of the call if there is no result or its time is unknown."""
        return (self.result.message.at if self.result else None) or self.call.message.at

    @property
    def failed(self) -> bool:
        """True if the transcript or a nonzero exit code marks a failure.

        If the transcript marks neither failure nor success and no exit code is known, True if the output starts like an
        error or its JSON has an `error`. A command that does more than read also failed if its output counts failures,
        or begins or ends with an error, unless its own exit status is known or it is still running. The output of reads
        and searches is not examined.
        """
        if self.result is None:
            return False
        if self.result.message.failed or self.exit_code:
            return True
        is_marked = self.result.message.failed is not None or self.exit_code is not None
        is_certain = (is_marked and not shell.is_status_lost(self.command)) or shell.is_read_only(self.command)
        if self.kind is ToolKind.RUN and not (is_certain or self.process) and shell.is_failure(self.output):
            return True
        if is_marked:
            return False
        if self.kind in (ToolKind.READ, ToolKind.SEARCH):
            return False  # the output is a file's text, not the tool's
        says_failed = _SAYS_FAILED if self.kind in _QUIET_KINDS else _SAYS_RUN_FAILED
        return bool(self.reply.get("error") or says_failed.match(self.output))

    def argument(self, *names: str) -> str:
        """Return the first of these arguments that is a non-empty string, or an empty string."""
        for name in names:
            value = self.arguments.get(name)
            if isinstance(value, str) and value:
                return value
        return ""

    @property
    def is_read_only(self) -> bool:
        """True if the name of a remote tool begins with a verb like "get" or "list"."""
        return bool(_READ_ONLY_VERB.match(_remote_name(self.name)[1]))


def tool_kind(name: str) -> ToolKind | None:
    """Return the kind of the tool with this name, or None if it is unknown.

    An MCP server's tool is REMOTE if it is unknown or asks to approve a plan, because no user approves a server's plan.
    """
    known = _KINDS_BY_NAME.get(name.lower())
    if known is not None:
        return known
    server, tool = _remote_name(name)
    # A server's "search" or "read_file" does what its name suggests. Other names are ambiguous.
    kind = _KINDS_BY_NAME.get(tool.lower(), ToolKind.REMOTE) if server else None
    return ToolKind.REMOTE if kind is ToolKind.PLAN else kind


def _remote_name(name: str) -> tuple[str, str]:
    """Split an MCP tool's name into server and tool. For other names the server is empty."""
    match = _REMOTE.match(name)
    if match is None:
        return "", name
    return match["server"] or match["server2"], match["tool"] or match["tool2"]


def tool_event(call: KeptMessage, result: KeptMessage | None) -> ToolEvent | None:
    """Return a call and its result as an event, or None if the tool is unknown."""
    name = call.message.tool or ""
    kind = tool_kind(name)
    if kind is None:
        return None
    raw = call.message.text
    arguments = _json_object(raw)
    if kind is ToolKind.RUN and PATCH in raw:
        # A patch given to a shell is an edit.
        kind, raw, arguments = ToolKind.EDIT, shell.command_of(arguments, raw), {}
    elif kind is ToolKind.EDIT:
        kind = _EDITOR_COMMANDS.get(str(arguments.get("command")), kind)
    answer = result.message.text if result else ""
    reply = _json_object(answer)
    output = _output_text(reply, answer, kind)
    command = shell.command_of(arguments, raw) if kind is ToolKind.RUN else ""
    exit_code = _exit_code(result, reply)
    if exit_code is None and result and result.message.failed is None and command and not shell.is_read_only(command):
        exit_code = shell.exit_code_in(answer)
    return ToolEvent(
        kind=kind,
        name=name,
        call=call,
        result=result,
        arguments=arguments,
        raw=raw,
        command=command,
        output=output,
        reply=reply,
        exit_code=exit_code,
        process=_process(kind, output) if exit_code is None else None,
    )


def _output_text(reply: Mapping[str, object], output: str, kind: ToolKind) -> str:
    """Return a tool's text without the JSON or tags that some agents wrap around it."""
    if kind is ToolKind.RUN and reply:
        parts = [part for name in _JSON_OUTPUT if isinstance(part := reply.get(name), str) and part]
        return "\n".join(parts) if parts or "stdout" in reply or "output" in reply else output
    if kind is ToolKind.DELEGATE and (report := _REPORT.search(output)):
        _, _, text = report[1].rpartition("--- RESULT ---\n")
        return "\n".join(line for line in text.splitlines() if not line.startswith("[Tool: "))
    if kind is ToolKind.RUN and _RETURN_CODE.match(output) and (printed := _REPORT.search(output)):
        return printed[1]
    return _EXIT_TAG.sub("", output) if kind is ToolKind.RUN else output


def _process(kind: ToolKind, output: str) -> str | None:
    if kind is ToolKind.RUN:
        going_on = _RUNNING.search(output[:2000])
    else:
        going_on = _SUBAGENT_LAUNCHED.match(output) if kind is ToolKind.DELEGATE else None
    return going_on[1] if going_on else None


def _exit_code(result: KeptMessage | None, reply: Mapping[str, object]) -> int | None:
    if result is None:
        return None
    if result.message.exit_code is not None:
        return result.message.exit_code
    if tagged := _EXIT_TAG.search(result.message.text[:2000]):
        return int(tagged[1])
    code = reply.get("exit_code", reply.get("exitCode"))
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def target_of(event: ToolEvent) -> str:
    """Return what a tool was used on, such as a file, pattern or address, or an empty string."""
    if event.kind in (ToolKind.EDIT, ToolKind.WRITE) and (changes := changed_files(event.arguments, event.raw)):
        return changes[0].path
    if event.kind is ToolKind.SEARCH:
        return event.argument("pattern", "query", "glob", "path", "file_path", "directory", "dir_path")
    return event.argument("file_path", "path", "filePath", "absolute_path", "target_file", "url", "description")


def process_end(call: KeptMessage, result: KeptMessage) -> str | None:
    """Return the id of the process whose end a call reports, or None if it reports none."""
    if (call.message.tool or "").lower() not in _POLLS:
        return None
    arguments = _json_object(call.message.text)
    process = next(
        (arguments[name] for name in ("session_id", "bash_id", "task_id", "shell_id") if name in arguments), None
    )
    message = result.message
    ended = (
        message.exit_code is not None
        or _EXIT_TAG.search(message.text[:2000])
        or _PROCESS_ENDED.search(message.text[:2000])
    )
    return str(process) if process is not None and ended else None


def _json_object(text: str) -> Mapping[str, object]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


@positional_record
class Paths:
    """Converts paths to the form shown in rows: on one line, and relative to `cwd` if below it."""

    cwd: str | None

    def __call__(self, path: str) -> str:
        return one_line(below(self.cwd, path))


def event_draft(
    events: Iterable[ToolEvent],
    text: str,
    kind: Type,
    importance: int,
    *,
    status: Status | None = None,
    priority: Priority | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Draft:
    """Return a row about these events. None values in `metadata` are left out."""
    listed = list(events)
    fields = {name: value for name, value in (metadata or {}).items() if value is not None}
    return Draft(
        text=text,
        type=kind,
        importance=importance,
        status=status,
        priority=priority,
        sources=tuple(sorted({seq for event in listed for seq in event.sources})),
        event_at=listed[-1].at,
        metadata=MappingProxyType(fields),
    )


_ARGUMENTS = 2000
"""Number of characters of a running call's arguments that are stored for the row written at its end."""


def process_fields(event: ToolEvent) -> dict[str, str]:
    """Return the metadata that identifies a running call when it ends, or an empty dict for other calls."""
    if not event.process:
        return {}
    return {"process": event.process, "tool": event.name, "arguments": event.call.message.text[:_ARGUMENTS]}


def running_call(row: Observation) -> tuple[str, KeptMessage] | None:
    """Return the id of the process that a row reports as running, and its call, or None for other rows."""
    process, tool, arguments = (row.metadata.get(name) for name in ("process", "tool", "arguments"))
    if row.status is not Status.OPEN or not row.sources:
        return None
    if not (isinstance(process, str) and isinstance(tool, str) and isinstance(arguments, str)):
        return None
    call = Message(role=Role.CALL, text=arguments, tool=tool, at=row.event_at)
    return process, KeptMessage(
        seq=row.sources[0],
        session=row.session or "",
        key=row.message_ids[0],
        message=call,
        tokens=0,
        counter=row.counter,
    )
