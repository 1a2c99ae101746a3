"""An MCP server on stdin and stdout, made of plain functions that return text. Only this module imports the SDK.

The SDK calls the functions in threads, several at once.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Annotated, Any, get_args
from urllib.parse import quote

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, Resource, ToolAnnotations
from pydantic import BeforeValidator, Field

from omcli.base.errors import OmError
from omcli.base.record import record

_URI = "om://context/{session}"
_ABOUT_CONTEXT = "What an agent should know to go on with a session."


@record
class ListedPack:
    """A session whose pack clients can attach to a prompt."""

    session: str
    title: str
    about: str


@record
class ToolSet:
    """All that a server offers. A tool is a function whose parameters are annotated with a type and a description; its
    docstring tells a model when to call it. An underscore at the end of a parameter's name is not part of the name.
    """

    read: Sequence[Callable[..., str]]
    write: Sequence[Callable[..., str]]
    """Tools that only add to the memory."""
    hide: Sequence[Callable[..., str]]
    pack: Callable[[str], str]
    """Returns the pack of a session."""
    sessions: Callable[[], Iterable[ListedPack]]


class _Server(MCPServer[Any]):
    """A server whose list of resources is made again at each request."""

    sessions: Callable[[], Iterable[ListedPack]]

    async def list_resources(self) -> list[Resource]:
        try:
            sessions = await asyncio.to_thread(lambda: tuple(self.sessions()))
        except OmError as error:
            raise MCPError(code=INTERNAL_ERROR, message=_told(error)) from None
        return [
            Resource(
                uri=_URI.format(session=quote(each.session, safe="")),
                name=each.title,
                description=each.about,
                mime_type="text/plain",
            )
            for each in sessions
        ]


def server_of(offered: ToolSet, *, version: str, instructions: str) -> MCPServer[Any]:
    """Return the server, which is not running yet. Its log goes to stderr."""
    hints = partial(ToolAnnotations, open_world_hint=False)
    tools = [
        *(_tool(each, hints(read_only_hint=True)) for each in offered.read),
        *(_tool(each, hints(read_only_hint=False, destructive_hint=False)) for each in offered.write),
        *(_tool(each, hints(read_only_hint=False, destructive_hint=True)) for each in offered.hide),
    ]
    server = _Server("om", version=version, instructions=instructions, tools=tools, log_level="ERROR")
    server.sessions = offered.sessions

    # By default, the SDK treats a session as part of a path, and refuses ids such as `/tmp/chat`.
    security = ResourceSecurity(exempt_params={"session"})

    @server.resource(_URI, name="context", description=_ABOUT_CONTEXT, security=security)
    def pack(session: str) -> str:
        try:
            return offered.pack(session)
        except OmError as error:
            raise ResourceError(_told(error)) from None

    return server


def run_server(offered: ToolSet, *, version: str, instructions: str) -> None:
    """Serve until stdin ends. Meanwhile, only the protocol is written to stdout: anything else goes to stderr."""
    server_of(offered, version=version, instructions=instructions).run()


def _tool(function: Callable[..., str], hints: ToolAnnotations) -> Tool:
    declared = inspect.signature(function, eval_str=True).parameters.values()
    names = {each.name.rstrip("_"): each.name for each in declared}

    def call(**given: object) -> str:
        try:
            return function(**{names[name]: value for name, value in given.items()})
        except OmError as error:
            raise ToolError(_told(error)) from None

    call.__name__ = function.__name__  # errors of arguments name it
    call.__signature__ = inspect.Signature([_parameter(each) for each in declared])  # type: ignore[attr-defined]
    call.__annotations__ = {}
    # A str as structured content would be the same text again, and some clients show a model only that.
    tool = Tool.from_function(call, description=_paragraph(function), annotations=hints, structured_output=False)
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"  # a misspelt filter would otherwise be ignored
    arguments.model_rebuild(force=True)
    tool.parameters = _short(arguments.model_json_schema())
    return tool


def _parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter as the SDK wants it. Models may give null for one that has a default."""
    kind, about = get_args(parameter.annotation)
    default = parameter.default
    checks = () if default is inspect.Parameter.empty else (BeforeValidator(partial(_given_or, default)),)
    annotation: Any = Annotated[(kind, *checks, Field(description=about))]
    return parameter.replace(
        name=parameter.name.rstrip("_"), kind=inspect.Parameter.KEYWORD_ONLY, annotation=annotation
    )


def _given_or(default: object, value: object) -> object:
    return default if value is None else value


def _paragraph(function: Callable[..., str]) -> str:
    return " ".join((function.__doc__ or "").split())


def _short(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without titles, and without defaults that are empty, 0 or false: they tell a model nothing."""
    parameters = {
        name: {key: value for key, value in each.items() if key != "title" and (key != "default" or value)}
        for name, each in schema["properties"].items()
    }
    return {key: value for key, value in schema.items() if key != "title"} | {"properties": parameters}


def _told(error: OmError) -> str:
    return f"{error.message}\nhint: {error.hint}" if error.hint else error.message
