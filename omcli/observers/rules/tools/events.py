"""Tool calls with their results, under canonical names, and the file changes they ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType

from omcli.base.patterns import lazily
from omcli.base.record import field, positional_record, record
from omcli.memory.message import KeptMessage, Message, Role
from omcli.memory.observation import Draft, Observation, Priority, Status, Type
from omcli.observers.rules.shell import command_of
from omcli.text.clean import below, one_line

PATCH = "*** Begin Patch"
_PATCH_FILE = lazily(r"^\*\*\* (Add|Update|Delete) File: (.+)$")
_PATCH_MOVE = lazily(r"^\*\*\* Move to: (.+)$")


@record
class FileChange:
    """One file's part of an edit: `old` was replaced by `new`; creating has no old, deleting no new."""

    path: str
    old: str = ""
    new: str = ""
    creates: bool = False
    deletes: bool = False
    moved_to: str = ""


def edited_files(arguments: Mapping[str, object], raw: str) -> list[FileChange]:
    """The changes that an edit tool was asked for, a file at a time. Empty where the arguments are none we know."""
    patch = arguments.get("patch") or arguments.get("input") or arguments.get("diff") or raw
    if isinstance(patch, str) and PATCH in patch:
        return list(_edited_in_patch(patch))
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
            old=_first_text(part, "old_string", "oldText", "old_str", "old_text", "search"),
            new=_first_text(
                part, "new_string", "newText", "new_str", "new_text", "replace", "content", "new_source", "file_text"
            ),
        )
        for part in parts
    ]


def _edited_in_patch(patch: str) -> Iterator[FileChange]:
    """The files of a patch in the `*** Begin Patch` notation."""
    verb, path, moved = "", "", ""
    old: list[str] = []
    new: list[str] = []

    def finished() -> Iterator[FileChange]:
        if path:
            creates, deletes = verb == "Add", verb == "Delete"
            texts = {"old": "\n".join(old), "new": "\n".join(new)}
            yield FileChange(path=path, creates=creates, deletes=deletes, moved_to=moved, **texts)

    for line in patch.splitlines():
        if heading := _PATCH_FILE.match(line):
            yield from finished()
            verb, path, moved = heading[1], heading[2].strip(), ""
            old, new = [], []
        elif move := _PATCH_MOVE.match(line):
            moved = move[1].strip()
        elif line.startswith("-"):
            old.append(line[1:])
        elif line.startswith("+"):
            new.append(line[1:])
    yield from finished()


def _first_text(arguments: Mapping[str, object], *names: str) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


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


_KINDS_BY_NAME: Mapping[str, ToolKind] = MappingProxyType(
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

_REMOTE = lazily(r"^mcp__(?P<server>.+?)__(?P<tool>.+)$|^(?P<server2>[\w\-]+)[./:](?P<tool2>[\w\-]+)$")
_READ_ONLY_VERB = lazily(
    r"^(?:get|list|read|search|find|fetch|query|view|describe|show|lookup|resolve|inspect|check)(?![a-z])",
    re.IGNORECASE,
)


_RUNNING = lazily(r"\brunning (?:with session ID|in (?:the )?background with ID:?) *([\w-]+)", re.IGNORECASE)
_SUBAGENT_LAUNCHED = lazily(r"^Async agent launched\b.{0,200}?\bagentId: *([\w-]+)", re.IGNORECASE | re.DOTALL)
_EXIT_TAG = lazily(r"<exit_code>(\d{1,9})</exit_code>")
_POLLS = frozenset({"write_stdin", "bashoutput", "taskoutput"})
"""Tools that ask what became of a process."""
_PROCESS_ENDED = lazily(r"<status>(?:completed|failed|killed)</status>")
_REPORT = lazily(r"<output>\n?(.*?)(?:</output>|\Z)", re.DOTALL)
# How tools say that they failed where the transcript has no mark for it: in their first words.
_SAYS_FAILED = lazily(
    r"\s*+(?!(?:ok|done|success|edited|updated|modified|created|wrote|written|replaced|the file)\b)"
    r"(?:<tool_use_error>|(?:tool )?(?:error|failed|failure|exception)\b|traceback \(|"
    r"(?:could|can|did|does|was|is) ?not\b|cannot\b|can't\b|unable to\b|invalid\b|no such file|permission denied|"
    r"[^\n]{0,60}\bnot (?:found|unique)\b|no match(?:es)? (?:found )?for\b)",
    re.IGNORECASE,
)
_SAYS_RUN_FAILED = lazily(r"\s*(?:<tool_use_error>|(?:tool )?(?:execution )?(?:Error|error|failed|exception):)")
_JSON_OUTPUT = ("stdout", "output", "stderr", "error")
"""Where an output that is a JSON object holds what was printed, what went wrong last."""
_QUIET_KINDS = frozenset({ToolKind.EDIT, ToolKind.WRITE, ToolKind.TODO})
"""Tools that say nothing but whether it worked."""


@record
class ToolEvent:
    """A call with its result: what an extractor sees. `result` is None where the transcript has none for it."""

    kind: ToolKind
    name: str
    call: KeptMessage
    result: KeptMessage | None
    arguments: Mapping[str, object] = field(default_factory=dict)
    """The call's JSON object; empty where the arguments are free text (`raw`)."""
    raw: str = ""
    output: str = ""
    """What the tool said. Of a JSON object that holds what a command printed, that."""
    reply: Mapping[str, object] = field(default_factory=dict)
    """The output's JSON object; empty where it is none."""
    exit_code: int | None = None
    """The exit code the transcript gives, if any."""
    process: str | None = None
    """The id of the process or subagent that the call left at work, where it did not end."""

    @property
    def sources(self) -> tuple[int, ...]:
        """`seq` of the call and of its result."""
        return (self.call.seq,) if self.result is None else tuple(sorted({self.call.seq, self.result.seq}))

    @property
    def at(self) -> str | None:
        """When it ended, or began where it did not end."""
        return (self.result.message.at if self.result else None) or self.call.message.at

    @property
    def failed(self) -> bool:
        """Whether it failed: as the transcript marks it, else by its exit code, else by its own first words."""
        if self.result is None:
            return False
        if self.result.message.failed or self.exit_code:
            return True
        if self.result.message.failed is not None or self.exit_code is not None:
            return False
        if self.kind in (ToolKind.READ, ToolKind.SEARCH):
            return False  # what they found speaks, not they
        says_failed = _SAYS_FAILED if self.kind in _QUIET_KINDS else _SAYS_RUN_FAILED
        return bool(self.reply.get("error") or says_failed.match(self.output))

    def argument(self, *names: str) -> str:
        """The first of these arguments that is a text, or the empty text."""
        for name in names:
            value = self.arguments.get(name)
            if isinstance(value, str) and value:
                return value
        return ""

    @property
    def is_read_only(self) -> bool:
        """REMOTE: whether its name says that it changes nothing."""
        return bool(_READ_ONLY_VERB.match(_remote_name(self.name)[1]))


def tool_kind(name: str) -> ToolKind | None:
    """What a tool does, by its name; None for one that nobody knows."""
    known = _KINDS_BY_NAME.get(name.lower())
    if known is not None:
        return known
    server, tool = _remote_name(name)
    # A server's own "search" or "read_file" does what the word says; its other verbs are its own.
    return _KINDS_BY_NAME.get(tool.lower(), ToolKind.REMOTE) if server else None


def _remote_name(name: str) -> tuple[str, str]:
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
        kind, raw, arguments = ToolKind.EDIT, command_of(arguments, raw), {}
    answer = result.message.text if result else ""
    reply = _json_object(answer)
    output = _output_text(reply, answer, kind)
    exit_code = _exit_code(result, reply)
    return ToolEvent(
        kind=kind,
        name=name,
        call=call,
        result=result,
        arguments=arguments,
        raw=raw,
        output=output,
        reply=reply,
        exit_code=exit_code,
        process=_process(kind, output) if exit_code is None else None,
    )


def _output_text(reply: Mapping[str, object], output: str, kind: ToolKind) -> str:
    """What a tool said, out of the wrapping that some agents put around it."""
    if kind is ToolKind.RUN and reply:
        parts = [part for name in _JSON_OUTPUT if isinstance(part := reply.get(name), str) and part]
        return "\n".join(parts) if parts or "stdout" in reply or "output" in reply else output
    if kind is ToolKind.DELEGATE and (report := _REPORT.search(output)):
        _, _, told = report[1].rpartition("--- RESULT ---\n")
        return "\n".join(line for line in told.splitlines() if not line.startswith("[Tool: "))
    return output


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


def subject(event: ToolEvent) -> str:
    """What a tool was used on: the file, the pattern, the address. Empty where it says nothing of the kind."""
    if event.kind in (ToolKind.EDIT, ToolKind.WRITE) and (changes := edited_files(event.arguments, event.raw)):
        return changes[0].path
    if event.kind is ToolKind.SEARCH:
        return event.argument("pattern", "query", "glob", "path", "file_path", "directory", "dir_path")
    return event.argument("file_path", "path", "filePath", "absolute_path", "target_file", "url", "description")


def finished_process(call: KeptMessage, result: KeptMessage) -> str | None:
    """The process whose end a call reports; None for another tool, and while the process goes on."""
    if (call.message.tool or "").lower() not in _POLLS:
        return None
    given = _json_object(call.message.text)
    process = next((given[name] for name in ("session_id", "bash_id", "task_id", "shell_id") if name in given), None)
    said = result.message
    ended = said.exit_code is not None or _EXIT_TAG.search(said.text[:2000]) or _PROCESS_ENDED.search(said.text[:2000])
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
    """Paths as rows name them: below the working directory without it."""

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
    """A row of these events. Of `metadata` what is None is left out."""
    told = list(events)
    known = {name: value for name, value in (metadata or {}).items() if value is not None}
    return Draft(
        text=text,
        type=kind,
        importance=importance,
        status=status,
        priority=priority,
        sources=tuple(sorted({seq for event in told for seq in event.sources})),
        event_at=told[-1].at,
        metadata=MappingProxyType(known),
    )


_ARGUMENTS = 2000
"""Characters of a call that are kept with its row: the row of how it ended is written from them."""


def process_metadata(event: ToolEvent) -> dict[str, str]:
    """Metadata of a call that goes on: what its end will be known by, and what was called. Empty for any other."""
    if not event.process:
        return {}
    return {"process": event.process, "tool": event.name, "arguments": event.call.message.text[:_ARGUMENTS]}


def running_call(row: Observation) -> tuple[str, KeptMessage] | None:
    """The process that a row says goes on, and its call as far as the row keeps it; None for any other row."""
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
