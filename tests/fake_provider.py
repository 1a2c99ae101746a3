"""A model endpoint on the loopback that speaks both wires, and fails in every way that endpoints fail.

In a test, through the fixture `fake_model`; from a shell:

    python -m tests.fake_provider --port 8123 --acts '[{"status": 429, "headers": {"retry-after": "2"}}]'

Requests to `/v1/messages` are Anthropic's, requests to `/v1/chat/completions` OpenAI's. Each takes the next of `acts`;
when none is left, the reply is the echo of `omcli.providers.scripted`. Requests to `/v1/embeddings` get vectors that
are alike if their texts share words, or words that `synonyms` names.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import ssl
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from omcli.llm.model import OutputMode, Prompt
from omcli.providers.scripted import echo

KEY = "the-key-of-the-tests-0123456789"
HTML = "<!DOCTYPE html><html><head><title>Welcome to the hotel</title></head><body>Log in</body></html>"
PROSE = "Certainly! Here is what I noticed in the conversation you shared."
_STOPS = {
    "messages": {"end": "end_turn", "length": "max_tokens", "refusal": "refusal"},
    "chat": {"end": "stop", "length": "length", "refusal": "content_filter"},
}
_PIECE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What becomes of one request."""

    text: str | None = None
    """The reply; None: the echo."""
    stop: str = "end"
    """`end`, `length`, `refusal`, or whatever the wire is to say."""
    usage: Mapping[str, int] = field(default_factory=lambda: {"input": 100, "output": 10, "cached": 40})
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    """An error object with this message: with status 200 as with any other."""
    code: int | None = None
    """The code in the error object."""
    html: bool = False
    is_null: bool = False
    """A reply without content."""
    body: str | None = None
    """The whole body, whatever it is."""
    hang: bool = False
    """Takes the request and never answers."""
    trickle: float = 0
    """Seconds between two bytes."""
    is_compressed: bool = False
    """A body in gzip."""
    drop_after: int | None = None
    """Bytes of the body after which the connection is closed."""
    mid_stream_error: str | None = None
    """Half of a streamed reply, then an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def wire(self) -> str:
        """`messages`, `chat` or `embeddings`."""
        return {"messages": "messages", "embeddings": "embeddings"}.get(self.path.rpartition("/")[2], "chat")

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        return list(self.body["input"])

    @property
    def key(self) -> str:
        """The key that came with it, in either header."""
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def output_mode(self) -> OutputMode:
        """How it asks for structure."""
        kind = self.body.get("response_format", {}).get("type") or self.body.get("output_config", {}).get(
            "format", {}
        ).get("type")
        return OutputMode(kind) if kind else OutputMode.PROMPT

    @property
    def schema(self) -> dict[str, Any]:
        """The schema it holds, wherever that stands."""
        form = self.body.get("output_config", {}).get("format") or self.body.get("response_format") or {}
        found = form.get("schema") or form.get("json_schema", {}).get("schema")
        schema: dict[str, Any] = found or json.loads(self.system.splitlines()[-1])
        return schema

    @property
    def system(self) -> str:
        """The rules."""
        system = self.body["system"] if self.wire == "messages" else self.body["messages"][0]["content"]
        return str(system)

    @property
    def parts(self) -> list[dict[str, Any]]:
        """What the user says, as parts."""
        content = self.body["messages"][-1]["content"]
        return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)

    @property
    def text(self) -> str:
        """Its texts."""
        return "\n".join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def is_streamed(self) -> bool:
        """Whether the reply is to come piece by piece."""
        return bool(self.body.get("stream"))


class KnownOutputModes:
    """Output modes of endpoints, remembered during one test."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], OutputMode] = {}

    def output_mode(self, endpoint: str, model: str) -> OutputMode | None:
        """The output mode that worked last."""
        return self.known.get((endpoint, model))

    def put_output_mode(self, endpoint: str, model: str, output_mode: OutputMode) -> None:
        """Remember it."""
        self.known[endpoint, model] = output_mode


class FakeModel:
    """A model endpoint, served while the context is open."""

    def __init__(self, acts: Sequence[Act] = (), *, certificate: Path | None = None, port: int = 0) -> None:
        self.acts = list(acts)
        self.asked: list[Asked] = []
        self.refused_fields: tuple[str, ...] = ()
        """Fields that are answered with 400, naming them."""
        self.refused_formats: dict[OutputMode, int] = {}
        """Formats that are answered with this status, naming them."""
        self.ignored_formats: tuple[OutputMode, ...] = ()
        """Formats that are taken and answered with prose."""
        self.synonyms: dict[str, str] = {}
        """Words that mean the same, for vectors."""
        self.dimensions = 512
        """Number of dimensions of the vectors."""
        self.over = threading.Event()
        """Lets go of what hangs."""
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.fake = self
        self._scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def root(self) -> str:
        """The base URL of the Anthropic wire."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        """The base URL of the OpenAI wire."""
        return f"{self.root}/v1"

    def example(self, wire: str, *, is_streamed: bool) -> list[Any]:
        """What a good reply is made of: its events, or its one body."""
        path = "/v1/messages" if wire == "anthropic" else "/v1/chat/completions"
        messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "m1 hello"}]
        body = {
            "model": "m",
            "system": "s",
            "messages": messages,
            "stream": is_streamed,
            "stream_options": {"include_usage": True},
        }
        asked = Asked(path=path, headers={}, body=body)
        act = Act(text='{"observations": []}')
        if not is_streamed:
            return [_reply(act, asked)]
        data = "".join(_events(act, asked)).splitlines()
        return [json.loads(line[6:]) for line in data if line.startswith("data: {")]

    def then(self, *acts: Act) -> None:
        """What becomes of the next requests."""
        self.acts += acts

    def always(self, act: Act, times: int = 50) -> None:
        """What becomes of all requests to come."""
        self.acts += [act] * times

    def act_for(self, asked: Asked) -> Act:
        """Notes the request and says what becomes of it."""
        with self._lock:
            self.asked.append(asked)
            for name in self.refused_fields:
                if name in asked.body or (name == "image" and any(part["type"] != "text" for part in asked.parts)):
                    return Act(status=400, error=f"Unsupported parameter: '{name}' is not supported with this model.")
            if status := self.refused_formats.get(asked.output_mode):
                return Act(status=status, error=f"response_format.type: Input should not be '{asked.output_mode}'")
            if asked.output_mode in self.ignored_formats:
                return Act(text=PROSE)
            return self.acts.pop(0) if self.acts else Act()


class _Server(ThreadingHTTPServer):
    fake: FakeModel
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so it is called in the library
        """Quiet."""

    def do_GET(self) -> None:
        self._send(404, {"content-type": "text/plain"}, b"404 page not found")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(path=self.path, headers=headers, body=body)
        if not self.path.endswith(("/v1/messages", "/v1/chat/completions", "/v1/embeddings")):
            self._send(404, {"content-type": "text/plain"}, b"404 page not found")
            return
        act = self.server.fake.act_for(asked)
        if act.hang:
            self.server.fake.over.wait(60)
            self.close_connection = True
            return
        kind, content = _content(act, asked, self.server.fake)
        sent = {"content-type": kind, **act.headers}
        if act.is_compressed:
            sent, content = {**sent, "content-encoding": "gzip"}, gzip.compress(content)
        self._send(act.status, sent, content, act=act)

    def _send(self, status: int, headers: Mapping[str, str], content: bytes, *, act: Act | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if act and act.drop_after is not None:
            self.wfile.write(content[: act.drop_after])
            self.close_connection = True
        elif act and act.trickle:
            for byte in content:
                self.wfile.write(bytes([byte]))
                if self.server.fake.over.wait(act.trickle):
                    return
        else:
            self.wfile.write(content)


def _content(act: Act, asked: Asked, fake: FakeModel) -> tuple[str, bytes]:
    """Content type and body of an answer."""
    if act.html:
        return "text/html; charset=utf-8", HTML.encode()
    if act.body is not None:
        return "application/json", act.body.encode()
    if act.error is not None:
        return "application/json", json.dumps(_error(act, asked)).encode()
    if act.status != 200:
        return "text/plain", b""
    if asked.wire == "embeddings":
        return "application/json", json.dumps(_embeddings(act, asked, fake)).encode()
    if asked.is_streamed:
        return "text/event-stream", "".join(_events(act, asked)).encode()
    return "application/json", json.dumps(_reply(act, asked)).encode()


def _error(act: Act, asked: Asked) -> dict[str, Any]:
    error: dict[str, Any] = {"type": "some_error", "message": act.error}
    if act.code is not None:
        error["code"] = act.code
    return {"type": "error", "error": error} if asked.wire == "messages" else {"error": error}


def _text(act: Act, asked: Asked) -> str:
    if act.text is not None:
        return act.text
    return echo(Prompt(system=asked.system, content=(asked.text,), schema=asked.schema, name="reply"))


def _stop(act: Act, asked: Asked) -> str:
    return _STOPS[asked.wire].get(act.stop, act.stop)


def _reply(act: Act, asked: Asked) -> dict[str, Any]:
    text = None if act.is_null else _text(act, asked)
    if asked.wire == "messages":
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked.body["model"],
            "content": None if text is None else [{"type": "text", "text": text}],
            "stop_reason": _stop(act, asked),
            "stop_sequence": None,
            "usage": _usage(act, asked),
        }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_770_000_000,
        "model": asked.body["model"],
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": _stop(act, asked)}
        ],
        "usage": _usage(act, asked),
    }


def _embeddings(act: Act, asked: Asked, fake: FakeModel) -> dict[str, Any]:
    data = [
        {"object": "embedding", "index": at, "embedding": vector_of(text, fake.dimensions, fake.synonyms)}
        for at, text in enumerate(asked.texts)
    ]
    total = act.usage["input"]
    usage = {"prompt_tokens": total, "total_tokens": total}
    return {"object": "list", "model": asked.body["model"], "data": data[::-1], "usage": usage}


def vector_of(text: str, dimensions: int = 512, synonyms: Mapping[str, str] | None = None) -> list[float]:
    """A vector that counts words by their hash; beginnings of six letters stand for words."""
    vector = [0.0] * dimensions
    vector[0] = 0.01
    for word in re.findall(r"[^\W_]+", text.lower()):
        known = (synonyms or {}).get(word, word)[:6]
        vector[zlib.crc32(known.encode()) % dimensions] += 1.0
    return vector


def _usage(act: Act, asked: Asked) -> dict[str, Any]:
    """Anthropic counts what is cached apart, OpenAI within."""
    total, cached, output = act.usage["input"], act.usage["cached"], act.usage["output"]
    if asked.wire == "messages":
        return {
            "input_tokens": total - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": output,
        }
    return {
        "prompt_tokens": total,
        "completion_tokens": output,
        "total_tokens": total + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _events(act: Act, asked: Asked) -> Iterator[str]:
    text = _text(act, asked)
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    if act.mid_stream_error is not None:
        pieces = pieces[: len(pieces) // 2]
    yield from (_message_events if asked.wire == "messages" else _chat_events)(act, asked, pieces)


def _message_events(act: Act, asked: Asked, pieces: Sequence[str]) -> Iterator[str]:
    def event(name: str, **fields: object) -> str:
        return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n"

    start = {**_reply(replace(act, text=""), asked), "content": [], "stop_reason": None}
    start["usage"] = {**start["usage"], "output_tokens": 1}
    yield event("message_start", message=start)
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield event("ping")
    for piece in pieces:
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    if act.mid_stream_error is not None:
        yield event("error", error={"type": "overloaded_error", "message": act.mid_stream_error})
        return
    yield event("content_block_stop", index=0)
    output = act.usage["output"]
    delta = {"stop_reason": _stop(act, asked), "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": output})
    yield event("message_stop")


def _chat_events(act: Act, asked: Asked, pieces: Sequence[str]) -> Iterator[str]:
    def event(**fields: object) -> str:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": asked.body["model"]}
        return f"data: {json.dumps({**head, **fields})}\n\n"

    for piece in pieces:
        yield event(choices=[{"index": 0, "delta": {"content": piece}, "finish_reason": None}])
    if act.mid_stream_error is not None:
        yield event(error={"message": act.mid_stream_error, "code": "server_error"})
        return
    yield event(choices=[{"index": 0, "delta": {}, "finish_reason": _stop(act, asked)}])
    if asked.body.get("stream_options", {}).get("include_usage"):
        yield event(choices=[], usage=_usage(act, asked))
    yield "data: [DONE]\n\n"


def main() -> None:
    """Serves until it is interrupted."""
    parser = argparse.ArgumentParser(description="A model endpoint on the loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--acts", default="[]", help="JSON list of acts (fields of `Act`), or @FILE")
    given = parser.parse_args()
    text = Path(given.acts[1:]).read_text(encoding="utf-8") if given.acts.startswith("@") else given.acts
    with FakeModel([Act(**act) for act in json.loads(text)], port=given.port) as fake:
        print(f"OPENAI_BASE_URL={fake.url} ANTHROPIC_BASE_URL={fake.root}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
