"""An agent that uses the memory over MCP: in the process of the tests, or over the pipes of a server of its own."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from omcli.cli.command import Run
from omcli.cli.commands.mcp import Memory
from omcli.mcp_server import server_of
from tests.conftest import Om

_Found = TypeVar("_Found")
_MARKED = re.compile(r"\A<om-memory>\n(.*)</om-memory>\n", re.DOTALL)


class Agent:
    """A client and the server of `om mcp` with these options, both in this process. Each call is a session."""

    def __init__(self, *, can_write: bool = False, session: str | None = None, project: str | None = None) -> None:
        memory = Memory(Run(), session=session, project=project, can_write=can_write)
        self._server = server_of(memory.tool_set(), version="1", instructions="")

    def ask(self, question: Callable[[Client], Awaitable[_Found]]) -> _Found:
        """What the server answers."""

        async def asked() -> _Found:
            async with Client(self._server) as client:
                return await question(client)

        return asyncio.run(asked())

    def error(self, question: Callable[[Client], Awaitable[object]]) -> str:
        """The error that the server answers with."""

        async def caught(client: Client) -> str:
            try:
                return f"no error: {await question(client)}"
            except MCPError as error:
                return error.error.message

        return self.ask(caught)

    def call(self, tool: str, **arguments: object) -> CallToolResult:
        return self.ask(lambda client: client.call_tool(tool, arguments))

    def __call__(self, tool: str, **arguments: object) -> str:
        """The text that a tool returns, without the marks around what a command printed."""
        result = self.call(tool, **arguments)
        assert not result.is_error, text_of(result)
        assert result.structured_content is None
        return text_of(result) if tool == "context" else _MARKED.sub(r"\1", text_of(result))

    def fails(self, tool: str, **arguments: object) -> str:
        """The error that a tool returns."""
        result = self.call(tool, **arguments)
        assert result.is_error, text_of(result)
        assert "Traceback" not in text_of(result)
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


class Pipes:
    """A process of `om mcp`, and the lines that go in and out."""

    def __init__(self, om: Om, *options: str) -> None:
        self.process = om.start("mcp", *options)
        self._number = 0

    def begin(self) -> dict[str, Any]:
        """What the server says of itself."""
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        answer = self.ask("initialize", **client)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        """The answer to a request: its result, or its error."""
        self._number += 1
        self.write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters})
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.end()
        answer: dict[str, Any] = json.loads(line)
        assert answer["id"] == self._number
        return answer["result"] if "result" in answer else {"error": answer["error"]}

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        return self.ask("tools/call", name=tool, arguments=arguments)

    def write(self, message: dict[str, object] | bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(message if isinstance(message, bytes) else f"{json.dumps(message)}\n".encode())
        self.process.stdin.flush()

    def end(self) -> tuple[int, bytes, bytes]:
        """Close stdin: the exit code, and what is left of stdout and stderr."""
        try:
            out, told = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, out, told
