"""Runs that are killed while they write."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import Om
from tests.e2e.contents import users


@dataclass(slots=True)
class Killing:
    """Kills runs at random moments from when they open the store to their end, on machines of any speed."""

    chance: random.Random
    seconds: float = 0.5
    """From opening the store to the end; less, when runs were quicker."""

    def undisturbed(self, om: Om, *command: str | Path) -> None:
        """A run that is not killed tells how long one takes."""
        process = om.start(*command)
        began = self._opened(om, process.poll)
        _, stderr = process.communicate()
        assert process.returncode == 0, stderr
        self.seconds = time.monotonic() - began

    def killed(self, om: Om, *command: str | Path) -> bool:
        """Starts a run and kills it; False where it was quicker, and then the next one is killed much earlier."""
        process = om.start(*command)
        self._opened(om, process.poll)
        time.sleep(self.seconds * self.chance.random())
        process.kill()
        process.communicate()
        if process.returncode == -signal.SIGKILL:
            return True
        self.seconds /= 8
        return False

    @staticmethod
    def _opened(om: Om, code: Callable[[], int | None]) -> float:
        """Waits until the store is open: a file has its log beside it then; gives the time."""
        log = om.db.with_name(f"{om.db.name}-wal")
        while not (users(om.url) if om.url else log.exists()) and code() is None:
            time.sleep(0.0002)
        return time.monotonic()
