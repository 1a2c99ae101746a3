"""What is shown of each real client: memory arrives in its next session, survives a compaction, travels to other
clients, and `om uninstall` leaves nothing behind.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from tests.clients.model_server import ModelServer, Request
from tests.clients.packages import CannotInstall
from tests.clients.programs import PROGRAMS, ClientFailed, Machine, RealClient

FIRST = "We decided that the ferry office listens on port 4711. Always write timetables with tabs."
FACT = "port 4711"
SECOND = "For this harbour we decided to paint the lighthouse in vermilion."
OWN_FACT = "vermilion"
_SECONDS = 60
_MEMORY = re.compile(r"<om-memory\b.*?</om-memory>", re.DOTALL)
_OURS = re.compile(rb"om hook |om['\"]? hook|om install")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is to be shown, and how it went."""

    client: str
    name: str
    is_shown: bool
    note: str = ""


class NotShown(Exception):
    """The opposite of what was expected, with what was found."""


def memory_of(request: Request) -> str:
    """Return the packs that a request carries."""
    return "\n".join(_MEMORY.findall(unescape(request.text)))  # Gemini CLI escapes what hooks say


class Scenario:
    """The steps of one client, each of which builds on those before it."""

    def __init__(self, client: RealClient, before: dict[Path, bytes]) -> None:
        self.client, self.machine, self.before = client, client.machine, before
        self.server = client.machine.server

    def steps(self) -> list[tuple[str, Callable[[], str]]]:
        """Return the names of the steps and what they do; each returns a note or raises NotShown."""
        compaction = [("compaction keeps it", self.compact), ("and the session resumed later", self.go_on)]
        return [
            ("om install", self.install),
            ("session 1 is observed", self.first),
            ("session 2 is told it", self.second),
            *(compaction if self.client.compacts else []),
            *([("a tool of om mcp answers", self.ask_server)] if self.client.takes_mcp else []),
            ("packs make no rows of their own", self.nothing_twice),
            ("om doctor sees the hooks", self.doctor),
            ("om uninstall restores all", self.uninstall),
        ]

    def install(self) -> str:
        self.machine.ask_om("install", self.client.name)
        self.machine.ask_om("install", self.client.name)  # it changes nothing the second time
        return ""

    def first(self) -> str:
        self.client.say(f"{FIRST} Read the file {self.machine.notes}.")
        wait_for_row(self.machine, FACT)
        return ""

    def second(self) -> str:
        count = len(self.server.turns)
        self.client.say(SECOND)
        request = self.server.turns[count]
        expect(
            FACT in memory_of(request), f"the first request of session 2 has no `{FACT}`: {memory_of(request)[:300]!r}"
        )
        expect(memory_of(request).count(FACT) == 1, f"`{FACT}` is told {memory_of(request).count(FACT)} times")
        wait_for_row(self.machine, OWN_FACT)
        return f"{len(memory_of(request)):,} characters"

    def ask_server(self) -> str:
        count = len(self.server.turns)
        self.client.say_with_mcp("Recall the ferry office.")
        turns = self.server.turns[count:]
        answers = [turn for turn in turns if FACT in turn.last]
        offered = [each.get("name") for each in turns[0].body["tools"]] if turns else []
        expect(bool(answers), f"no answer with `{FACT}` in {len(turns)} turns; the tools were {offered}")
        return f"{len(answers[0].last):,} characters"

    def compact(self) -> str:
        self.client.compact_and_say("Go on.")
        summaries = [at for at, request in enumerate(self.server.requests) if request.is_for_summary]
        is_by_om = self.client.name == "pi"
        expect(bool(summaries) != is_by_om, f"{len(summaries)} requests for a summary")
        note = "by om compact, without a model" if is_by_om else ""
        if not is_by_om and self.client.name in ("claude-code", "opencode"):
            asked = self.server.requests[summaries[-1]].last
            expect(
                OWN_FACT in asked.partition("Facts of this session")[2],
                "the summariser is not told the session's facts",
            )
            note = "the summariser is told as well"
        self._expect_both(summaries[-1] + 1 if summaries else -1)
        return note

    def go_on(self) -> str:
        self.client.go_on("And then?")
        self._expect_both(-1)
        return ""

    def _expect_both(self, at: int) -> None:
        """Expect a fact of session 1 and one of session 2 itself in the first turn from a request on."""
        turn = next(request for request in self.server.requests[at:] if request.is_turn)
        summary = turn.text if self.client.name == "pi" else ""  # that of om, with the session's rows
        for fact, carried in ((FACT, memory_of(turn)), (OWN_FACT, memory_of(turn) + summary)):
            expect(fact in carried, f"`{fact}` is not in the memory: {carried!r}")

    def nothing_twice(self) -> str:
        """Take in all that the client has written, in which what it was told comes back."""
        self.machine.ask_om("consolidate")
        log = self.machine.ask_om("log", "--all")
        for fact in (FACT, OWN_FACT):
            expect(log.count(fact) == 1, f"{log.count(fact)} rows with `{fact}`: {log}")
        return ""

    def doctor(self) -> str:
        checks = json.loads(self.machine.ask_om("doctor", "--json"))["checks"]
        found = next((check for check in checks if check["name"] == self.client.name), None)
        expect(found is not None and found["state"] == "pass", f"om doctor: {found}")
        bad = [f"{check['name']}: {check['text']}" for check in checks if check["state"] in ("warn", "fail")]
        return "; ".join(bad)

    def uninstall(self) -> str:
        self.machine.ask_om("uninstall", self.client.name)
        after = files(self.machine.home)
        changed = [str(path) for path, data in self.before.items() if after.get(path) != data]
        expect(not changed, f"not as before: {', '.join(changed)}")
        ours = [str(path) for path in after.keys() - self.before.keys() if is_ours(path, after[path])]
        expect(not ours, f"left behind: {', '.join(ours)}")
        return f"{len(self.before)} files byte for byte"


def is_ours(path: Path, content: bytes) -> bool:
    """Return True for a file that `om install` wrote, or has written to. The store and its logs stay."""
    if path.parts[:3] in ((".local", "state", "om"), (".local", "share", "om")) or path.suffix in (".jsonl", ".db"):
        return False
    is_settings = path.suffix in (".json", ".toml", ".ts", ".js", ".md") and "node_modules" not in path.parts
    return "om-memory" in path.parts or (is_settings and _OURS.search(content) is not None)


def files(home: Path) -> dict[Path, bytes]:
    """Return the content of every file below a home."""
    return {path.relative_to(home): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def expect(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise NotShown(otherwise)


def wait_for_row(machine: Machine, text: str) -> None:
    """Wait until a worker has written a row with a text."""
    until = time.monotonic() + _SECONDS
    while text not in machine.ask_om("log"):
        expect(time.monotonic() < until, f"no row with `{text}` after {_SECONDS} seconds: {machine.ask_om('log')!r}")
        time.sleep(0.2)


@contextmanager
def machine_at(folder: Path, om: Path) -> Iterator[Machine]:
    """Make a home and a project in a folder, with a model server."""
    home, project = folder / "home", folder / "harbour"
    home.mkdir(parents=True)
    project.mkdir()
    (project / "notes.txt").write_text("The tide tables are in the harbour office.\n")
    with ModelServer() as server:
        machine = Machine(home=home, project=project, om=om, server=server)
        machine.run(["git", "init", "-q", "."], machine.environment())
        yield machine


def show(name: str, folder: Path, om: Path, scenario: type[Scenario] = Scenario) -> Iterator[Step]:
    """Yield the steps of a client, in a new folder. After one that fails, the others are not tried."""
    with machine_at(folder, om) as machine:
        try:
            client = PROGRAMS[name](machine)
        except CannotInstall as error:
            yield Step(client=name, name="npm install", is_shown=False, note=str(error))
            return
        yield from tried(name, scenario(client, files(machine.home)).steps())


def show_travel(names: Sequence[str], folder: Path, om: Path) -> Iterator[Step]:
    """Yield the steps that show memory travelling from each client to the next one in the same project."""
    with machine_at(folder, om) as machine:
        clients = [PROGRAMS[name](machine) for name in names]
        before = files(machine.home)

        def first() -> str:
            machine.ask_om("install", *names)
            clients[0].say(FIRST)
            wait_for_row(machine, FACT)
            return ""

        def go_on(client: RealClient) -> str:
            count = len(machine.server.turns)
            client.say(f"What did we say? I am the user of {client.name}, and {client.name} shall greet in green.")
            found = memory_of(machine.server.turns[count])
            expect(FACT in found, f"no `{FACT}` in {found[:300]!r}")
            expect(found.count(FACT) == 1, f"`{FACT}` is told {found.count(FACT)} times")
            return ""

        def doctor() -> str:
            checks = json.loads(machine.ask_om("doctor", "--json"))["checks"]
            bad = [f"{check['name']}: {check['text']}" for check in checks if check["state"] in ("warn", "fail")]
            expect(not bad, "; ".join(bad))
            return f"{len(checks)} checks"

        def uninstall() -> str:
            machine.ask_om("uninstall", *names)
            after = files(machine.home)
            changed = [str(path) for path, data in before.items() if after.get(path) != data]
            ours = [str(path) for path in after.keys() - before.keys() if is_ours(path, after[path])]
            expect(not changed + ours, f"changed or left behind: {', '.join(changed + ours)}")
            return ""

        steps = [("is told something", first)]
        yield from tried(names[0], steps)
        for client in clients[1:]:
            yield from tried(client.name, [(f"knows what {names[0]} was told", lambda client=client: go_on(client))])  # type: ignore[misc]
        yield from tried("all", [("om doctor is all pass", doctor), ("om uninstall restores all", uninstall)])


def tried(client: str, steps: Sequence[tuple[str, Callable[[], str]]]) -> Iterator[Step]:
    """Yield how each step went, until one fails."""
    for name, act in steps:
        try:
            note = act()
        except (NotShown, ClientFailed) as error:
            yield Step(client=client, name=name, is_shown=False, note=str(error))
            return
        yield Step(client=client, name=name, is_shown=True, note=note)
