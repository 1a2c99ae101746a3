"""Run the real clients and print a table: `python -m tests.clients [CLIENT …]`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.clients.packages import VERSIONS
from tests.clients.programs import PROGRAMS
from tests.clients.recording import RecordedScenario
from tests.clients.scenario import Scenario, Step, show, show_travel

TRAVEL = ("claude-code", "codex", "pi", "opencode", "gemini")


def main() -> int:
    """Return 1 if something was not shown."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description="Run real clients offline.")
    parser.add_argument(
        "clients", nargs="*", metavar="CLIENT", help=f"of {', '.join(PROGRAMS)}; default: all, then together"
    )
    parser.add_argument("--om", type=Path, default=Path(sys.executable).with_name("om"), help="program to install")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    parser.add_argument("--record", action="store_true", help="save what each hook is given")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="om-real-"))
    steps: list[Step] = []
    for name in given.clients or PROGRAMS:
        for step in show(name, folder / name, given.om, RecordedScenario if given.record else Scenario):
            print_step(step)
            steps.append(step)
    if not given.clients:
        for step in show_travel(TRAVEL, folder / "together", given.om):
            print_step(step)
            steps.append(step)
    if given.keep:
        print(f"folders are in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if all(step.is_shown for step in steps) else 1


def print_step(step: Step) -> None:
    """Print a line of the table."""
    version = VERSIONS.get(step.client, ("", ""))[1]
    print(
        f"{step.client:<12}{version:<10}{'shown' if step.is_shown else 'NOT':<7}{step.name:<32}{step.note}", flush=True
    )


if __name__ == "__main__":
    sys.exit(main())
