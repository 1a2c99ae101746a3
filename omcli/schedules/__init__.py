"""Scheduled jobs: a module for each scheduler, and the function that selects one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from omcli.schedules.cron import Cron
from omcli.schedules.job import Scheduler
from omcli.schedules.launchd import Launchd
from omcli.schedules.systemd import Systemd

NAMES = ("cron", "systemd", "launchd")


def scheduler(name: str, environment: Mapping[str, str]) -> Scheduler:
    """Return the scheduler with this name, one of NAMES."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises if there is none
    if name == "systemd":
        folder = environment.get("XDG_CONFIG_HOME", "").strip()
        return Systemd((Path(folder) if folder else home / ".config") / "systemd" / "user")
    return Launchd(home / "Library" / "LaunchAgents") if name == "launchd" else Cron()


def default_name() -> str:
    """Return the name of this system's usual scheduler."""
    if sys.platform == "darwin":
        return "launchd"
    return "systemd" if os.path.isdir("/run/systemd/system") else "cron"  # noqa: PTH112
