"""How each real client is run without a terminal: its settings, its environment and its command lines."""

from __future__ import annotations

import json
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tests.clients.model_server import ModelServer
from tests.clients.packages import folders_of_programs

_SECONDS = 120
_LONG = "The harbour master reads the tide tables before every crossing and writes down what he sees. " * 40
"""A text that makes a session worth compacting."""
_SHORTER = "Check the tables of all harbours for the day after tomorrow, and tell me if one of them is missing or late."


class ClientFailed(Exception):
    """A client that ended with an error or not at all, with what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A user's home, a project and a model, and the om that is tested."""

    home: Path
    project: Path
    om: Path
    server: ModelServer

    @property
    def notes(self) -> Path:
        """A file in the project that a prompt may ask the agent to read."""
        return self.project / "notes.txt"

    def environment(self, *programs: Path) -> dict[str, str]:
        """Return an environment without anything of the user's own."""
        folders = [*programs, self.om.parent, "/usr/local/bin", "/usr/bin", "/bin"]
        return {"HOME": str(self.home), "PATH": ":".join(map(str, folders)), "TERM": "dumb", "LANG": "C.UTF-8"}

    def run(self, words: Sequence[str | Path], environment: Mapping[str, str], stdin: str = "") -> str:
        """Run a program in the project and return what it prints."""
        line = list(map(str, words))
        try:
            ended = subprocess.run(
                line, cwd=self.project, env=dict(environment), input=stdin, capture_output=True, text=True,
                timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise ClientFailed(f"{Path(line[0]).name} did not end within {_SECONDS} seconds") from None
        if ended.returncode:
            said = (ended.stderr or ended.stdout).strip()[-400:]
            raise ClientFailed(f"{Path(line[0]).name} ended with {ended.returncode}: {said}")
        return ended.stdout

    def ask_om(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """Run a command of om."""
        return self.run([self.om, *words], self.environment() | dict(env or {}))


class RealClient(ABC):
    """A client on a machine. The last session that it ran is the one that it goes on with."""

    name: ClassVar[str]
    program: ClassVar[str]
    compacts: ClassVar[bool] = True
    """False if it cannot be made to compact a session without a terminal."""
    takes_mcp: ClassVar[bool] = False
    """True if a session with the tools of `om mcp` can be begun here."""
    variables: ClassVar[Mapping[str, str]] = {}

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.folders = folders_of_programs(self.name)
        for path, text in self.settings(machine.server.url).items():
            file = machine.home / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    @property
    def environment(self) -> dict[str, str]:
        return self.machine.environment(*self.folders) | dict(self.variables)

    def run(self, *words: str, stdin: str = "") -> str:
        """Run the client."""
        return self.machine.run([self._program, *words], self.environment, stdin)

    @property
    def _program(self) -> str:
        found = shutil.which(self.program, path=str(self.folders[0]))
        if found is None:
            raise ClientFailed(f"the package has no program {self.program}")
        return found

    @abstractmethod
    def settings(self, url: str) -> Mapping[str, str]:
        """Return the files in the home that are there before `om install`: some with hooks of another tool."""

    @abstractmethod
    def say(self, prompt: str) -> None:
        """Begin a session with a prompt."""

    def say_with_mcp(self, prompt: str) -> None:
        """Begin a session with a prompt and the tools of `om mcp`."""
        raise ClientFailed(f"{self.name} is not given a server here: {prompt}")

    @abstractmethod
    def compact_and_say(self, prompt: str) -> None:
        """Compact the context of the last session, then go on with it, in one process if that can be done."""

    @abstractmethod
    def go_on(self, prompt: str) -> None:
        """Go on with the last session in a new process."""


_HOOK = """{
    "theme" : "dark", "hooks":{ "SessionEnd" : [
        {"hooks":[ {"type":"command","command":"true # another tool"} ]} ]
    }}
"""
"""Settings with a hook of another tool, formatted by hand."""


class ClaudeCode(RealClient):
    name, program = "claude-code", "claude"
    takes_mcp = True
    variables: ClassVar[Mapping[str, str]] = {
        "ANTHROPIC_API_KEY": "x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1", "ENABLE_TOOL_SEARCH": "false",
    }  # fmt: skip

    def settings(self, url: str) -> Mapping[str, str]:
        del url
        return {".claude/settings.json": _HOOK}

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"ANTHROPIC_BASE_URL": self.machine.server.url}

    def say(self, prompt: str) -> None:
        self.run("-p", prompt)

    def say_with_mcp(self, prompt: str) -> None:
        servers = json.dumps({"mcpServers": {"om": {"command": str(self.machine.om), "args": ["mcp"]}}})
        self.run("-p", "--mcp-config", servers, "--allowedTools", "mcp__om__recall", "--", prompt)

    def compact_and_say(self, prompt: str) -> None:
        said = [{"type": "user", "message": {"role": "user", "content": text}} for text in ("/compact", prompt)]
        forms = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
        self.run("-p", "--continue", *forms, stdin="".join(f"{json.dumps(each)}\n" for each in said))

    def go_on(self, prompt: str) -> None:
        self.run("-p", "--continue", prompt)


class Codex(RealClient):
    name, program = "codex", "codex"
    variables: ClassVar[Mapping[str, str]] = {"FAKE_KEY": "x"}

    def settings(self, url: str) -> Mapping[str, str]:
        config = f"""model = "m"
model_provider = "fake"
model_auto_compact_token_limit = 50000
check_for_update_on_startup = false
analytics.enabled = false

[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
"""
        return {".codex/config.toml": config, ".codex/hooks.json": _HOOK.replace('"theme" : "dark", ', "")}

    def run(self, *words: str, stdin: str = "") -> str:
        options = ("--dangerously-bypass-hook-trust", "--skip-git-repo-check")
        return super().run("exec", *options, *words, stdin=stdin)

    def say(self, prompt: str) -> None:
        self.run(prompt)

    def compact_and_say(self, prompt: str) -> None:
        self.machine.server.fill()
        self.go_on("Check the tables.")
        self.go_on(prompt)

    def go_on(self, prompt: str) -> None:
        self.run("resume", "--last", prompt)


class Pi(RealClient):
    name, program = "pi", "pi"
    variables: ClassVar[Mapping[str, str]] = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}

    def settings(self, url: str) -> Mapping[str, str]:
        provider = {"baseUrl": url, "apiKey": "x", "api": "anthropic-messages", "models": [{"id": "m"}]}
        return {
            ".pi/agent/models.json": json.dumps({"providers": {"fake": provider}}),
            ".pi/agent/settings.json": json.dumps({"compaction": {"keepRecentTokens": 20}}),
        }

    def run(self, *words: str, stdin: str = "") -> str:
        return super().run("--provider", "fake", "--model", "m", *words, stdin=stdin)

    def say(self, prompt: str) -> None:
        self.run("-p", prompt)

    def say_with_mcp(self, prompt: str) -> None:
        servers = json.dumps({"mcpServers": {"om": {"command": str(self.machine.om), "args": ["mcp"]}}})
        self.run("-p", "--mcp-config", servers, "--allowedTools", "mcp__om__recall", "--", prompt)

    def compact_and_say(self, prompt: str) -> None:
        with self._rpc() as rpc:
            rpc.send({"type": "prompt", "message": _LONG}, until={"type": "agent_settled"})
            rpc.send({"type": "prompt", "message": _SHORTER}, until={"type": "agent_settled"})
            compacted = rpc.send({"type": "compact"}, until={"type": "response", "command": "compact"})
            if not compacted["success"]:
                raise ClientFailed(f"pi did not compact: {compacted}")
            rpc.send({"type": "prompt", "message": prompt}, until={"type": "agent_settled"})

    def go_on(self, prompt: str) -> None:
        self.run("--continue", "-p", prompt)

    @contextmanager
    def _rpc(self) -> Iterator[_Rpc]:
        words = [self._program, "--provider", "fake", "--model", "m", "--mode", "rpc", "--continue"]
        with subprocess.Popen(
            words, cwd=self.machine.project, env=self.environment, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            try:
                yield _Rpc(process)
            finally:
                if process.stdin is not None:
                    process.stdin.close()
                process.wait(_SECONDS)


class _Rpc:
    """pi as a subprocess that reads commands and writes events, one JSON object per line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def send(self, command: Mapping[str, object], until: Mapping[str, object]) -> dict[str, Any]:
        """Send a command and return the first event that has the members `until`."""
        if self.process.stdin is None or self.process.stdout is None:
            raise ClientFailed("pi has no pipes")
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            event: dict[str, Any] = json.loads(line)
            if until.items() <= event.items():
                return event
        raise ClientFailed(f"pi ended at {command}")


class OpenCode(RealClient):
    name, program = "opencode", "opencode"
    variables: ClassVar[Mapping[str, str]] = {
        "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }  # fmt: skip

    def settings(self, url: str) -> Mapping[str, str]:
        model = {"name": "m", "limit": {"context": 100_000, "output": 4_000}}
        options = {"baseURL": f"{url}/v1", "apiKey": "x"}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options, "models": {"m": model}}
        config = {
            "$schema": "https://opencode.ai/config.json",
            "model": "fake/m",
            "autoupdate": False,
            "share": "disabled",
            "provider": {"fake": provider},
        }
        return {".config/opencode/opencode.json": json.dumps(config)}

    def say(self, prompt: str) -> None:
        self.run("run", prompt)

    def compact_and_say(self, prompt: str) -> None:
        self.machine.server.fill()
        self.go_on(prompt)

    def go_on(self, prompt: str) -> None:
        self.run("run", "--continue", prompt)


class Gemini(RealClient):
    name, program, compacts = "gemini", "gemini", False
    variables: ClassVar[Mapping[str, str]] = {"GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def settings(self, url: str) -> Mapping[str, str]:
        del url
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        }  # fmt: skip
        return {".gemini/settings.json": json.dumps(settings)}

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"GOOGLE_GEMINI_BASE_URL": self.machine.server.url}

    def say(self, prompt: str) -> None:
        self.run("-m", "gemini-2.5-pro", "-p", prompt)

    def compact_and_say(self, prompt: str) -> None:
        raise NotImplementedError

    def go_on(self, prompt: str) -> None:
        self.run("-m", "gemini-2.5-pro", "--resume", "latest", "-p", prompt)


PROGRAMS: Mapping[str, type[RealClient]] = {each.name: each for each in (ClaudeCode, Codex, Pi, OpenCode, Gemini)}
