"""A model server on the loopback that the real clients talk to: Anthropic Messages, OpenAI Responses and chat
completions, and Gemini. It keeps every request, and replies with short texts.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from uuid import uuid4

REPLY = "All right."
SUMMARY = "<summary>They talked about the ferry.</summary>"
"""The reply to a request for a summary. Claude Code asks again if it has no such tags."""
_ASKS_FOR_SUMMARY = ("summary of the conversation", "CONTEXT CHECKPOINT", "<conversation>")
_USAGE, _FULL = 1_000, 99_000
"""Tokens of a request as the server reports them, and after `fill`: clients compact by that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it came."""

    path: str
    body: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All texts that the model is shown, without descriptions of tools."""
        return "\n".join(_texts([self.body.get(key) for key in ("system", "systemInstruction", *_SAID)]))

    @property
    def last(self) -> str:
        """The text of the user's last message."""
        said = next((self.body[key] for key in _SAID if self.body.get(key)), "")
        of_user = [each for each in said if each.get("role") == "user"] if isinstance(said, list) else [said]
        return "\n".join(_texts(of_user[-1:]))

    @property
    def call(self) -> tuple[str, dict[str, str]] | None:
        """The call of a tool that the prompt asks for, with its arguments, if it was not made yet."""
        said: Any = next((self.body[key] for key in _SAID if self.body.get(key)), [])
        if not self.path.endswith(("/messages", ":streamGenerateContent")) or _is_result(said[-1]):
            return None
        tools = self.body.get("tools") or []
        names = [each["name"] for tool in tools for each in tool.get("functionDeclarations", [tool])]
        for pattern, known, argument in _CALLS:
            asked = pattern.search(self.last)
            name = next((name for name in names if name in known), None)
            if asked and name:
                return name, {argument: asked[1]}
        return None

    @property
    def is_turn(self) -> bool:
        """True for a turn of an agent. Clients also ask for titles and summaries, some of them with tools."""
        return bool(self.body.get("tools")) and not self.is_for_summary

    @property
    def is_for_summary(self) -> bool:
        """True if the client compacts the context."""
        return any(part in self.last for part in _ASKS_FOR_SUMMARY)


_SAID = ("messages", "input", "contents")
_CALLS = (
    (re.compile(r"Read the file (\S+)\."), ("Read", "read_file"), "file_path"),
    (re.compile(r"Recall the ([\w ]+)\."), ("mcp__om__recall", "mcp_om_recall", "recall"), "query"),
)
"""A sentence of a prompt, the names of the tool that it asks for, and the argument that is in the sentence."""


def _is_result(message: Mapping[str, Any]) -> bool:
    """Return True for a message with the result of a tool."""
    parts = message.get("content") or message.get("parts") or []
    return any("tool_use_id" in part or "functionResponse" in part for part in parts if isinstance(part, Mapping))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply of the model."""

    text: str
    usage: int
    """Number of tokens of the request, as reported."""
    call: tuple[str, dict[str, str]] | None
    """A tool to call, with its arguments, in the wires that can."""


class ModelServer(ThreadingHTTPServer):
    """Use it as a context manager."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Request] = []
        self._is_full = False
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The address, without a slash at the end."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def turns(self) -> list[Request]:
        """The requests that are turns of an agent."""
        return [request for request in self.requests if request.is_turn]

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def fill(self) -> None:
        """Report a full context with the next reply to an agent."""
        self._is_full = True

    def keep(self, request: Request) -> Reply:
        """Keep a request and return the reply to it."""
        with self._lock:
            self.requests.append(request)
            usage = _FULL if self._is_full and request.is_turn else _USAGE
            self._is_full = self._is_full and not request.is_turn
        return Reply(text=SUMMARY if request.is_for_summary else REPLY, usage=usage, call=request.call)


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send('{"data": [], "models": []}')

    def do_HEAD(self) -> None:
        self._send("")

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        wire = next((wire for end, wire in _WIRES.items() if path.endswith(end)), None)
        if wire is None:
            self._send('{"input_tokens": 100, "totalTokens": 100}')
            return
        request = Request(path=path, body=json.loads(data))
        reply = self.server.keep(request)
        is_stream = bool(request.body.get("stream")) or ":stream" in path
        events = list(wire(reply, is_stream=is_stream))
        named = (f"event: {event['type']}\n" if "type" in event else "" for event in events)
        lines = (f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(named, events, strict=True))
        self._send("".join(lines) if is_stream else json.dumps(events[0]), is_stream=is_stream)

    def _send(self, text: str, *, is_stream: bool = False) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the name in http.server
        """Keep quiet."""


_Events = Iterator[dict[str, Any]]


def _anthropic(reply: Reply, *, is_stream: bool) -> _Events:
    counts = {"input_tokens": reply.usage, "output_tokens": 10}
    message = {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant", "model": "m", "usage": counts}
    end = {"stop_reason": "tool_use" if reply.call else "end_turn", "stop_sequence": None}
    block: dict[str, object] = {"type": "text", "text": ""}
    delta: dict[str, object] = {"type": "text_delta", "text": reply.text}
    if reply.call is not None:
        name, arguments = reply.call
        block = {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    if not is_stream:
        yield message | end | {"content": [{"type": "text", "text": reply.text}]}
        return
    yield {"type": "message_start", "message": message | {"content": [], "stop_reason": None, "stop_sequence": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": end, "usage": counts}
    yield {"type": "message_stop"}


def _responses(reply: Reply, *, is_stream: bool) -> _Events:
    said = {"type": "output_text", "text": reply.text, "annotations": []}
    item = {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [said],
    }
    counts: dict[str, object] = {"input_tokens": reply.usage, "output_tokens": 10, "total_tokens": reply.usage + 10}
    counts |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    begun = {"id": f"resp_{uuid4().hex}", "object": "response", "created_at": 1, "model": "m", "output": []}
    whole = begun | {"status": "completed", "output": [item], "usage": counts}
    if not is_stream:
        yield whole
        return
    yield {"type": "response.created", "response": begun | {"status": "in_progress"}}
    started = item | {"status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "output_index": 0, "item": started}
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    yield {"type": "response.output_text.delta", "delta": reply.text, **place}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": whole}


def _chat(reply: Reply, *, is_stream: bool) -> _Events:
    counts = {"prompt_tokens": reply.usage, "completion_tokens": 10, "total_tokens": reply.usage + 10}
    message = {"role": "assistant", "content": reply.text}
    base: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    if not is_stream:
        yield base | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": counts}
        return
    base["object"] = "chat.completion.chunk"
    yield base | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    yield base | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": counts}


def _gemini(reply: Reply, *, is_stream: bool) -> _Events:
    del is_stream  # one event is the whole reply
    counts = {"promptTokenCount": reply.usage, "candidatesTokenCount": 10, "totalTokenCount": reply.usage + 10}
    part: dict[str, object] = {"text": reply.text}
    if reply.call is not None:
        name, arguments = reply.call
        part = {"functionCall": {"name": name, "args": arguments}}
    content = {"role": "model", "parts": [part]}
    yield {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": counts}


_WIRES = {
    "/messages": _anthropic,
    "/responses": _responses,
    "/chat/completions": _chat,
    ":generateContent": _gemini,
    ":streamGenerateContent": _gemini,
}
"""Makes the events of a reply by the end of the path."""
