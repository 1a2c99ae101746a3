"""Codex CLI: converting items of the Responses API into prompts, answers, calls and results."""

from __future__ import annotations

import json
import re

from omcli.base import lazily
from omcli.base.record import positional_record
from omcli.formats.injected import own_words, without_injected
from omcli.formats.source import Record
from omcli.formats.values import (
    compact_json,
    data_in,
    exit_code,
    image_from_text,
    image_text,
    objects,
    record,
    string,
    text,
)
from omcli.memory.message import Image, Message, MessageKind, Role

# Types of records in rollouts, and in the output of `codex exec --json`.
RECORDS = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication_metadata",
    }
)
STREAM_TYPES = frozenset(
    {
        "thread.started",
        "turn.started",
        "turn.completed",
        "turn.failed",
        "item.started",
        "item.updated",
        "item.completed",
        "error",
    }
)
_HISTORY_KEYS = {"session_id", "ts", "text"}


def is_history(entry: Record) -> bool:
    """Return True for a line of `history.jsonl`."""
    return entry.keys() == _HISTORY_KEYS


# Types of calls, with the key of their arguments. A call without a name is named after its type.
CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
    "web_search_call": "action",
}
_NAMED = frozenset({"function_call", "custom_tool_call"})
OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)

# Beginnings of text that Codex writes in the user's role.
_INJECTED = (
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<environment_context>",
    "<skill>",
    "<turn_aborted>",
    "<permissions instructions>",
    "<subagent_notification>",
    "<goal_context>",
    "<codex_internal_context",
    "<hook_prompt",
)
# Frames around a request: what the editor shows, and attached files as `## name: path`.
_FRAMES = ("# Context from my IDE setup:", "# Files mentioned by the user:")
_REQUEST = lazily(r"^## My request(?: for Codex)?:", re.MULTILINE)
_ATTACHED = lazily(r"^## [^\n]{1,300}?: ((?:[/~]|[A-Za-z]:\\)[^\n]+)$", re.MULTILINE)
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".bmp")
"""Ends of the paths of attached images, which the prompt shows in another way."""
_SHELL_COMMAND = "<user_shell_command>"

# Header that precedes the actual output.
_HEADER = lazily(
    r"(?:(?:Chunk ID|Wall time|Original token count|Total output lines|Exit code|Duration): [^\n]*\n"
    r"|Wall time [\d.]+ seconds\n"
    r"|Process (?:exited with code|running with session ID) [^\n]*\n"
    r"|Script (?:completed|failed|terminated|running with cell ID [^\n]*)\n)+"
    r"(?:Final output|Output):(?:\n|\Z)"
)
_EXIT_CODE = lazily(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
_STILL_RUNNING = lazily(r"^(?:Process running with session|Script running with cell) ID [^\n]*\n", re.MULTILINE)
_SANDBOX_EXIT_CODE = lazily(r"[^\n]*?\bexit code: (-?\d+)")
_FAILURES = (
    "failed in sandbox",
    "error: ",
    "apply_patch verification failed",
    "patch rejected",
    "write_stdin failed",
    "exec_command failed",
)
_CONNECTOR_FAILURE = '{"error":'


@positional_record
class Content:
    """A message's text with placeholders for its images, and the images."""

    text: str
    images: tuple[Image, ...] = ()


@positional_record
class ToolOutput:
    """Text of a tool result, and its success or failure if stated."""

    text: str
    failed: bool | None = None
    exit_code: int | None = None


def content_of(parts: object) -> Content:
    """Return the content of a message or tool output, given as text, an image, or a list of both."""
    if isinstance(parts, str):
        return Content(parts)
    if isinstance(parts, dict):
        parts = [parts]
    if not isinstance(parts, list):
        return Content("")
    texts: list[str] = []
    images: list[Image] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            kind = text(part.get("type"))
            url = text(part.get("image_url")) or text(part.get("url"))
            if kind in {"local_image", "localImage"}:
                texts.append(f"[image {text(part.get('path'))}]")
            elif "image" not in kind:
                texts.append(text(part.get("text")) or text(part.get("refusal")))
            elif data := data_in(url):
                images.append(image_from_text(*data))
                texts.append(image_text(images[-1]))
            else:
                texts.append(f"[image {url}]" if url else "[image]")
    return Content("\n".join(filter(None, texts)), tuple(images))


def prompt_text(said: str) -> str:
    """Return a person's words without injected text, and the paths of attached files other than images. Return "" if
    all of the text is injected.
    """
    words = said.lstrip()
    if words.startswith(_INJECTED):
        return ""
    files: list[str] = []
    if words.startswith(_FRAMES) and (request := _REQUEST.search(words)):
        if words.startswith(_FRAMES[1]):
            files = _ATTACHED.findall(words, 0, request.start())
        words = words[request.end() :]
    attached = (f"[file {path}]" for path in files if not path.lower().endswith(_IMAGES))
    return "\n".join(filter(None, (own_words(words).strip(), *attached)))


def own_parts(parts: object) -> object:
    """Return the content of a user item without the parts that Codex wrote."""
    if not isinstance(parts, list):
        return parts
    kept: list[object] = []
    for part in parts:
        said = text(record(part).get("text"))
        if not said or prompt_text(said):
            kept.append(part)
    return kept


def user_command(said: str, *, at: str | None, cwd: str | None) -> Message | None:
    """Return a command that the person ran with `!`, with its output, or None if the text is not a command."""
    if not said.lstrip().startswith(_SHELL_COMMAND):
        return None
    command, _, after = said.partition("<command>\n")[2].partition("\n</command>")
    outcome = outcome_of(after.partition("<result>\n")[2].rpartition("\n</result>")[0])
    ran = f"{command}\n{outcome.text}" if outcome.text else command
    return Message(
        role=Role.EVENT,
        text=ran,
        kind=MessageKind.SHELL,
        at=at,
        cwd=cwd,
        failed=outcome.failed,
        exit_code=outcome.exit_code,
    )


def answer_of(item: Record, *, at: str | None, cwd: str | None) -> Message | None:
    """Return an assistant item as a message, or None if it has no visible text."""
    content = content_of(item.get("content"))
    if not content.text.strip():
        return None
    return Message(
        role=Role.ASSISTANT, text=content.text, id=string(item.get("id")), at=at, cwd=cwd, images=content.images
    )


def call_of(item: Record, kind: str, *, at: str | None, cwd: str | None) -> Message | None:
    """Return the call in an item whose `kind` is in CALLS, or None if the call has no name."""
    tool = string(item.get("name")) if kind in _NAMED else kind.removesuffix("_call")
    if tool is None:
        return None
    call_id = string(item.get("call_id")) or string(item.get("id"))
    arguments = item.get(CALLS[kind])
    return Message(
        role=Role.CALL,
        text="" if arguments is None else compact_json(arguments),
        id=call_id,
        at=at,
        cwd=cwd,
        tool=_full_name(text(item.get("namespace")), tool),
        call_id=call_id,
    )


def _full_name(namespace: str, name: str) -> str:
    """Return `mcp__server__tool` for tools of MCP servers. Other namespaces are omitted: they only group Codex's own
    tools.
    """
    return f"{namespace.rstrip('_')}__{name.lstrip('_')}" if namespace.startswith("mcp__") else name


def result_of(item: Record, kind: str, tool: str | None, *, at: str | None, cwd: str | None) -> Message | None:
    """Return the result in an item whose `kind` is in OUTPUTS, or None if it has no result."""
    call_id = string(item.get("call_id"))
    if kind == "tool_search_output" and "tools" in item:
        content, outcome = Content(""), ToolOutput(_names(item["tools"]))
    elif "output" in item:
        output = item["output"]
        if isinstance(output, dict) and "content" in output:  # {"content": …, "success": …}
            content, success = content_of(output["content"]), output.get("success")
            outcome = ToolOutput(content.text, failed=not success if isinstance(success, bool) else None)
        else:
            content = content_of(output)
            outcome = outcome_of(content.text)
    else:
        return None
    return Message(
        role=Role.RESULT,
        text=without_injected(outcome.text),
        id=call_id and f"{call_id}:result",
        at=at,
        cwd=cwd,
        tool=tool,
        call_id=call_id,
        failed=outcome.failed,
        exit_code=outcome.exit_code,
        images=content.images,
    )


def outcome_of(output: str) -> ToolOutput:
    """Parse tool output: remove its header or JSON wrapping, and find its success and exit code."""
    if header := _HEADER.match(output):
        return _with_header(header[0], output[header.end() :])
    if output.startswith('{"') and (unwrapped := _from_json(output)):
        return unwrapped
    if output.startswith(_FAILURES):
        code = _SANDBOX_EXIT_CODE.match(output) if output.startswith("failed in sandbox") else None
        return ToolOutput(output, failed=True, exit_code=exit_code(code[1]) if code else None)
    return ToolOutput(output, failed=True if output.startswith(_CONNECTOR_FAILURE) else None)


def _with_header(header: str, said: str) -> ToolOutput:
    if exited := _EXIT_CODE.search(header):
        code = exit_code(exited[1])
        return ToolOutput(said, failed=code != 0, exit_code=code)
    # Keep this line, because it states that the command is still running, and the id of the process.
    if running := _STILL_RUNNING.search(header):
        return ToolOutput(running[0] + said)
    return ToolOutput(said, failed=True if "Script failed\n" in header or said.startswith(_CONNECTOR_FAILURE) else None)


def _from_json(output: str) -> ToolOutput | None:
    """Return the output of the old `shell` tool, a JSON object with text and exit code, or None for anything else."""
    try:
        value = record(json.loads(output))
    except (ValueError, RecursionError):
        return None
    code = exit_code(record(value.get("metadata")).get("exit_code"))
    if code is None or not isinstance(value.get("output"), str):
        return None
    return ToolOutput(text(value["output"]), failed=code != 0, exit_code=code)


def _names(tools: object) -> str:
    """Return the names of the tools found by a search, one per line."""
    lines: list[str] = []
    for tool in objects(tools):
        name = text(tool.get("name"))
        members = [text(member.get("name")) for member in objects(tool.get("tools"))]
        lines.extend([_full_name(name, member) for member in members] or [name])
    return "\n".join(lines)
