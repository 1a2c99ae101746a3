"""Recordings of the JSON that clients pass to hooks, as `recorded/CLIENT/EVENT.json`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from tests.clients.programs import Machine
from tests.clients.scenario import Scenario, files

RECORDED = Path(__file__).with_name("recorded")
HOME = "/home/ada"
"""The home in recordings. The project is the folder `harbour` there."""


class RecordedScenario(Scenario):
    """A scenario whose hooks run a script that keeps what it is given, and then runs om."""

    def install(self) -> str:
        note = super().install()
        self._substitute(self.machine.om, recorder(self.machine))
        return note

    def doctor(self) -> str:
        self._substitute(recorder(self.machine), self.machine.om)
        save(self.client.name, self.machine)
        return super().doctor()

    def _substitute(self, program: Path, by: Path) -> None:
        """Put one program in the place of another in settings and extensions."""
        for path, content in files(self.machine.home).items():
            if path not in self.before and not {"extensions", "plugins"}.intersection(path.parts):
                continue
            (self.machine.home / path).write_bytes(content.replace(bytes(program), bytes(by)))


def recorder(machine: Machine) -> Path:
    """Return the script that records; it is written if it is missing."""
    script = machine.home.parent / "recorder" / "om"
    if not script.exists():
        script.parent.mkdir()
        om, folder = shlex.quote(str(machine.om)), shlex.quote(str(script.parent))
        script.write_text(
            f'#!/bin/sh\n[ "$1" = hook ] || exec {om} "$@"\n'
            f'given={folder}/$(date +%s%N)-$$.json\ncat > "$given"\nexec {om} "$@" < "$given"\n'
        )
        script.chmod(0o755)
    return script


def save(client: str, machine: Machine) -> None:
    """Save the last call of each event, and of each source if a session starts."""
    folder = RECORDED / client
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    for path in sorted(recorder(machine).parent.glob("*.json")):
        text = path.read_text().replace(str(machine.project), f"{HOME}/harbour").replace(str(machine.home), HOME)
        text = text.replace(str(machine.project).replace("/", "-"), f"{HOME}/harbour".replace("/", "-"))
        call = json.loads(text)
        name = "-".join(filter(None, (call["hook_event_name"], call.get("source"))))
        (folder / f"{name}.json").write_text(json.dumps(call, indent=2, ensure_ascii=False) + "\n")
